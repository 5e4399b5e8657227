"""A collective job's workers as threads of one process, and one process that replays their batches.

``build`` makes a worker's programs as a fleet does; ``train`` runs them on threads, each with a scope and a session of
its own over a loopback network; ``Replay`` gives the gradients of single batches, from which a test makes what the
strategy's formula says.
"""

from typing import NamedTuple

import numpy as np

from fleet_mpi.fleet.application import applied
from fleet_mpi.fleet.collective_job import options_of, rewrite_for
from fleet_mpi.fleet.selection import valid_strategy
from fleet_mpi.fleet.strategy import DistributedStrategy
from fleet_mpi.program.build.backward import append_backward
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.graph.program import Program, program_guard
from fleet_mpi.program.graph.unique_name import guard
from fleet_mpi.runtime.collective_sessions import connect
from fleet_mpi.transpile import collective
from fleet_mpi.wire.loopback import Network
from tests.exact.threads_as_workers import as_workers


class Job(NamedTuple):
    """The programs that every worker runs."""

    main: object
    startup: object
    loss: object
    plan: object


class Worker:
    """One worker after training: its scope, and what it fetched at each step."""

    def __init__(self):
        self.scope, self.fetched, self.first = Scope(), [], {}

    def values(self, job):
        """{trainable parameter: its value}."""
        return {one.name: self.scope.array(one.name).copy() for one in job.main.all_parameters() if one.trainable}


def strategy(**switches):
    """A 2.x strategy with these switches and settings."""
    made = DistributedStrategy()
    for name, value in switches.items():
        setattr(made, name, value)
    return made


def build(network, optimizer, chosen, workers):
    """The job of a network (a function that returns its loss) with an optimizer and a strategy."""
    main, startup = Program(), Program()
    with program_guard(main, startup), guard():
        loss = network()
        valid = valid_strategy(chosen, optimizer, workers)
        applied(optimizer, valid, workers).minimize(loss)
        plan = collective.plan_of(main, workers, 0, options_of(valid))
        rewrite_for(main, startup, plan, valid)
    return Job(main, startup, loss, plan)


def train(job, feeds, fetches=(), lanes=1, watch=None):
    """Train on ``feeds[step][worker]``; returns the workers and the networks (one per lane) that they met on.

    ``watch(source, target, channel, array)`` sees every message.
    """
    networks = [Network(watch) for _ in range(lanes)]
    workers = [Worker() for _ in feeds[0]]
    as_workers(len(workers), networks, lambda group: work(
        workers[group.index], job, group, [step[group.index] for step in feeds], fetches))
    return workers, networks


def work(worker, job, group, feeds, fetches=(), place=None):
    """One worker's part, over any group."""
    connect(job.plan, worker.scope, group)
    executor = Executor(place)
    executor.worker = group.index
    executor.run(job.startup, scope=worker.scope)
    worker.first = worker.values(job)
    for feed in feeds:
        worker.fetched.append(executor.run(job.main, feed=feed, fetch_list=list(fetches), scope=worker.scope))


class Replay:
    """Gradients of single batches at given parameters, the loss scaled as among ``workers``."""

    def __init__(self, network, workers=1):
        self.main, self.startup, self.scope, self.executor = Program(), Program(), Scope(), Executor()
        with program_guard(self.main, self.startup), guard():
            self.loss = network()
            self.pairs = append_backward(self.loss)
        if workers > 1:
            collective._scale_loss(self.main, workers)
        self.executor.run(self.startup, scope=self.scope)

    def __call__(self, values, feed):
        """(loss, {parameter: gradient}) at these values."""
        for name, value in values.items():
            self.scope.array(name)[...] = value
        found = self.executor.run(self.main, feed=feed, fetch_list=[self.loss] + [grad for _, grad in self.pairs],
                                  scope=self.scope)
        return found[0], {param.name: grad for (param, _), grad in zip(self.pairs, found[1:])}


def in_rank_order(arrays):
    """Their sum, from the first to the last."""
    total = np.array(arrays[0])
    for one in arrays[1:]:
        total = total + one
    return total


def same(found, expected):
    """Whether two dictionaries of arrays are equal to the bit."""
    return found.keys() == expected.keys() and all(np.array_equal(found[name], expected[name]) for name in found)
