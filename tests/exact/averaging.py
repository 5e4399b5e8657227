"""One process that averages: what synchronous training must give, to the bit.

Every worker's batch is run from the same parameters, random ops as on that worker; gradients are averaged in worker
order; then the program's own update ops run once. Nothing of placement, wire, servers or transpiling is used.
"""

import hashlib

import numpy as np

from fleet_mpi.arrays import Rows
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.graph.types import Role
from fleet_mpi.update_rules import merge
from tests.exact.cells import built, feed_of
from tests.unit.program.building import from_scratch

UPDATES = Role.Optimize | Role.LRSched


class Averaging:
    """A cell's training in one process, for so many workers."""

    def __init__(self, cell, workers):
        self.cell = cell
        with from_scratch():
            self.made = built(cell)
        main = self.made.main
        self.gradients = {op.input("Param")[0]: op.attrs["op_role_var"][1] for op in main.global_block().ops
                          if op.role & UPDATES and op.output("ParamOut")}
        leading = self._leading(main.global_block())
        self.forward = only(main, lambda op: not op.role & UPDATES)
        self.update = only(main, lambda op: op.role & UPDATES or leading.intersection(op.output_arg_names))
        self.scope, self.executor = Scope(), Executor()
        self.executor.run(self.made.startup, scope=self.scope)
        self.workers = [self._worker(number) for number in range(workers)]

    def _leading(self, block):
        """What other ops compute for the updates, a learning rate by hand."""
        ops = list(block.ops)
        known, wanted = {*self.gradients, *self.gradients.values()}, set()
        for op in reversed(ops):
            if op.role & UPDATES or wanted.intersection(op.output_arg_names):
                wanted |= set(op.input_arg_names) - known
        return wanted

    def _worker(self, number):
        """(executor, scope) of a worker: its own statistics, everybody's parameters."""
        executor, scope = Executor(), Scope()
        executor.worker = number
        executor.run(self.made.startup, scope=scope)
        for name in self.gradients:
            scope.var(name).put(self.scope.array(name))
        return executor, scope

    def run(self):
        """All steps."""
        for step in range(self.cell.steps):
            given = [self._gradients(number, step) for number in range(len(self.workers))
                     if self.cell.has_data(number, step)]
            if not given:
                break
            for position, grad in enumerate(self.gradients.values()):
                self._hand_over(grad, self._combined([found[position] for found in given]))
            self.executor.run(self.update, scope=self.scope)
            if self.made.scheduler is not None:
                self.made.scheduler.step()

    def _gradients(self, number, step):
        executor, scope = self.workers[number]
        found = executor.run(self.forward, feed=feed_of(self.forward, number, step), scope=scope,
                             fetch_list=list(self.gradients.values()), return_numpy=False)
        return [self._kept_rows(one) if isinstance(one, Rows) else np.array(one) for one in found]

    def _kept_rows(self, rows):
        return merge(rows)

    def _combined(self, parts):
        """What the update is made with, of the workers' gradients of one variable."""
        return mean(parts)

    def _hand_over(self, name, grad):
        holder = self.scope.var(name)
        if isinstance(grad, Rows):
            # Plans are bound to the arrays they found: let the next run make a new one.
            holder.value = grad
            holder.replaced()
        else:
            holder.put(grad)

    def state(self):
        """{variable: array}: parameters and what updates keep, and worker 0's own persistable variables."""
        kept = {name: self.scope.array(name) for op in self.update.global_block().ops for name in op.output_arg_names}
        own = {var.name: self.workers[0][1].array(var.name) for var in self.forward.list_vars() if var.persistable}
        persistable = {var.name for var in self.made.main.list_vars() if var.persistable}
        return {name: array for name, array in {**own, **kept}.items() if name in persistable and array is not None}


def averaged(cell, workers):
    """The state that one process comes to."""
    one = Averaging(cell, workers)
    one.run()
    return one.state()


def only(program, wanted):
    """A copy with some of the ops."""
    twin = program.clone()
    block = twin.global_block()
    block.ops = [op for op in block.ops if wanted(op)]
    twin.touch()
    return twin


def mean(gradients):
    """Summed in order, then times one over their number."""
    if isinstance(gradients[0], Rows):
        if len(gradients) == 1:
            return gradients[0]
        total = merge(Rows(np.concatenate([one.ids for one in gradients]),
                           np.concatenate([one.values for one in gradients]), gradients[0].height))
        np.multiply(total.values, 1.0 / len(gradients), out=total.values)
        return total
    total = gradients[0].copy()
    for one in gradients[1:]:
        total += one
    return total * (1.0 / len(gradients)) if len(gradients) > 1 else total


def plain(cell):
    """The state after one process ran the whole program, as every script does: what one worker must give."""
    with from_scratch():
        made, executor, scope = built(cell), Executor(), Scope()
        executor.run(made.startup, scope=scope)
        for step in range(cell.steps):
            if cell.has_data(0, step):
                executor.run(made.main, feed=feed_of(made.main, 0, step), fetch_list=[made.loss], scope=scope)
                if made.scheduler is not None:
                    made.scheduler.step()
        return {var.name: scope.array(var.name) for var in made.main.list_vars()
                if var.persistable and scope.array(var.name) is not None}


def digest(state):
    """SHA-256 of a state: names, shapes, types and bits."""
    total = hashlib.sha256()
    for name in sorted(state):
        array = np.ascontiguousarray(state[name])
        total.update(f"{name} {array.shape} {array.dtype}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def differences(ours, theirs):
    """The names of two states that differ, for the message of a test."""
    return [name for name in sorted({*ours, *theirs})
            if name not in ours or name not in theirs or ours[name].tobytes() != theirs[name].tobytes()]
