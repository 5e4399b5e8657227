"""A worker's connection to its servers, and a server's life: where programs, placement, wire and modes meet.

A worker's session belongs to a scope: the scope's parameters and gradients become views of the client's flat
arrays, so that what an executor computes needs no copy to be sent (on a device it does: ``device_copies``). Servers
compute on the host. Without other processes (a world of one) the
server runs inside the worker, over loopback, whenever the worker waits.
"""

from typing import NamedTuple

import numpy as np

from fleet_mpi import modes, notices
from fleet_mpi.arrays import DistantTable, to_host
from fleet_mpi.errors import UsageError
from fleet_mpi.parameter_server import parting, presence, tables
from fleet_mpi.parameter_server.client import Client
from fleet_mpi.parameter_server.description import Description
from fleet_mpi.parameter_server.device_copies import DeviceCopies, rows_on_host
from fleet_mpi.parameter_server.patience import FIRST_STEP_S
from fleet_mpi.parameter_server.recipes import Recipe
from fleet_mpi.parameter_server.server import Server
from fleet_mpi.parameter_server.state import ServerState, rate
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.frame import Clock
from fleet_mpi.program.engine.places import CPUPlace
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.ranks import cluster, ending
from fleet_mpi.ranks.by_hand import refusal
from fleet_mpi.transpile.server_program import server_startup
from fleet_mpi.transpile.server_values import give_back, take_values
from fleet_mpi.update_rules import merge
from fleet_mpi.wire.loopback import Loopback, Network

SESSION = "@PARAMETER_SERVER@"  # the variable of a scope that holds its session
_open = None  # the session with which this process has joined its job, if any


def describe(distribution):
    """What the client and the servers of a job must know."""
    rows = distribution.row_placement
    by_rows = tuple(tables.described("rows", one.name, one.shape, one.dtype, rows.of_variable(one.name),
                                     distribution.recipes[one.name]) for one in rows.variables)
    recipes = distribution.recipes
    if not distribution.keeps_states:
        recipes = {name: Recipe("sgd", rate=one.rate) for name, one in recipes.items()}  # a rule without states
    return Description(distribution.placement, recipes, distribution.fed_rates, by_rows, distribution.rate_dtypes,
                       distribution.keeps_states)


class Link(NamedTuple):
    """A worker's way to its servers: its number, a transport, the servers' ranks, who a rank is."""

    worker: int
    transport: object
    servers: list
    name_of: object = str


class WorkerSession:
    """One worker's training connection, in one scope.

    Without a ``link`` the process joins the job as its only worker here; with one it is a worker among others of
    the same process, or of a job that was arranged elsewhere.
    """

    def __init__(self, distribution, scope, link=None):
        self.distribution, self.scope = distribution, scope
        self.cluster = self._join() if link is None else None
        link = link or (_embedded(distribution) if self.cluster.size == 1 else _over_mpi(self.cluster))
        description = describe(distribution)
        self.client = Client(link.transport, link.worker, link.servers, description, link.name_of)
        if self.cluster is not None:
            self._take_part(link)
        self.half = modes.worker_half(distribution.mode.name, self.client, distribution.options,
                                      workers=distribution.workers)
        self.rows = [None] * len(description.row_tables)
        self.table_numbers = {table.name: number for number, table in enumerate(description.row_tables)}
        self.is_over, self.steps = False, 0
        self.has_started = self._install()
        told = self.client.hello(distribution.fingerprint())[0]
        self.loaded_from, self.job = told["loaded from"], told["job"]
        if self.cluster is not None:
            Clock.process_worker = self.cluster.index
            cluster.at_exit(self.finish)
            _remember(self)

    def _join(self):
        plan = self.distribution
        joined = cluster.join("worker", plan.worker, workers=plan.workers, servers=list(plan.endpoints))
        if joined.size == 1 and plan.workers > 1:
            raise refusal("worker", joined.index, plan.workers, plan.endpoints)
        return joined

    def _take_part(self, link):
        if self.cluster.size > 1 and not self.cluster.takes_part:
            presence.wait_for(link.transport, link.worker, link.servers, link.name_of)
        self.cluster.takes_part = True
        self.client.first_step_s, self.client.is_first_step = FIRST_STEP_S, True

    def _install(self):
        """Let the scope's parameters and gradients lie in the client's flat arrays; values stay.

        Returns whether there were values: the startup program has run.
        """
        had_values = True
        params, grads = self.client.layout.views(self.client.params), self.client.layout.views(self.client.grads)
        for name, view in params.items():
            known = self.scope.array(name)
            if known is not None:
                view[...] = to_host(known)
            had_values = had_values and known is not None
            self.scope.var(name).put(view)
            if self.distribution.keeps_states:
                self.scope.var(self.distribution.gradients[name]).put(grads[name])
        self.device_params = DeviceCopies(self.scope, params)
        # What workers bring: gradients or, where the optimizers are theirs (geo), parameters.
        self.device_grads = self.device_params
        if self.distribution.keeps_states:
            self.device_grads = DeviceCopies(self.scope, {self.distribution.gradients[name]: view
                                                          for name, view in grads.items()})
        for number, table in enumerate(self.client.description.row_tables):
            # For programs besides the trainer's, which look rows up in a table of the scope.
            holder = self.scope.var(table.name)
            holder.put(None)
            holder.value = DistantTable(table.shape, table.dtype, self._fetch_from(number))
        return had_values

    def _fetch_from(self, number):
        return lambda ids, out: self.client.pull_rows({number: ids}, {number: [out]})

    def take_rows(self, table, rows):
        """Keep a row gradient for the next exchange, merged: its memory may be used for something else before."""
        self.rows[self.table_numbers[table]] = merge(rows_on_host(rows))

    def exchange(self):
        """What a step ends with: push and pull as the mode says."""
        if self.is_over:
            raise UsageError("this worker has said goodbye to the servers (fleet.stop_worker or exe.close): train "
                             "before that")
        for position, name in enumerate(self.distribution.fed_rates):
            rate = self.scope.array(name)
            if rate is None:
                raise UsageError(f"the learning rate {name!r} has no value: run the startup program first")
            self.client.rates[position] = to_host(rate).reshape(-1)[0]
        self.device_grads.gather()
        self.half.after_backward(self.rows)
        self.device_params.spread()
        self.rows = [None] * len(self.rows)
        self.steps += 1
        if self.cluster is not None:
            self.cluster.progress = self.steps

    def rate(self, name):
        """A learning rate that the servers compute, as of the last update."""
        return ServerState(self.client).fetch(rate(name)).item()

    def pull(self, with_rest=True):
        """Take the servers' parameters as they are; and what workers keep, from where the servers loaded theirs."""
        self.client.collect(self.client.pull())
        self.half.restart()
        self.device_params.spread()
        if with_rest and self.loaded_from:
            self.distribution.load_rest(self.loaded_from, self.scope)

    def flush(self):
        """Send what is left, and take the parameters it leads to."""
        self.device_grads.gather()
        self.half.finish()
        self.device_params.spread()

    def finish(self):
        """Send what is left, say goodbye. May be called again."""
        if not self.is_over:
            self.is_over = True
            self.flush()
            self.client.leave()


def session_of(scope):
    """The session of a scope, or None."""
    holder = scope.find_var(SESSION)
    return None if holder is None else holder.value


def connect(distribution, scope, link=None):
    """The session of a scope for a distribution, made (over ``link``, if one is given) if there is none."""
    known = session_of(scope)
    if known is None or known.is_over and known.distribution is not distribution:
        _refuse_a_second(link)
        known = scope.var(SESSION).value = WorkerSession(distribution, scope, link)
    elif known.distribution is not distribution:
        raise UsageError("this scope is connected to the servers of another program: finish that training first "
                         "(fleet.stop_worker or exe.close)")
    return known


def _refuse_a_second(link):
    """A worker is one to its servers: two scopes that push for it would be taken for one that goes wrong."""
    if link is None and _open is not None and not _open.is_over and _open.cluster.size > 1:
        raise UsageError("this process is training in another scope already, and is one worker: go on in that scope, "
                         "or finish that training first (fleet.stop_worker or exe.close)")


def _remember(session):
    global _open
    _open = session


def disconnect(distribution, scope):
    """End the session of a scope, if it is one for this distribution."""
    known = session_of(scope)
    if known is not None and known.distribution is distribution:
        known.finish()


def serve(distribution, index, scope):
    """Be server number ``index`` until all workers have left; its shards' values come from the scope."""
    job = cluster.join("server", index, distribution.endpoints[index], workers=distribution.workers,
                       servers=list(distribution.endpoints))
    if job.size == 1:
        raise refusal("server", index, distribution.workers, distribution.endpoints)
    show_presence()
    server = new_server(distribution, index, _mpi(job), [one.rank for one in job.workers],
                        [one.rank for one in job.servers], scope, name_of(job))
    server.patience.first_step_s, job.takes_part = FIRST_STEP_S, True
    job.progress = lambda: max(server.applied)
    notices.log().info("Server listening on %s", distribution.endpoints[index])
    with ending.amid("serving"):
        server.serve()
    give_back(distribution, server, scope)
    return server


def show_presence():
    """A server's: let the workers know that it prepares to serve. May be called again."""
    job = cluster.current()
    if job.size > 1 and not job.shown:
        job.shown = presence.show(_mpi(job), job.index, [one.rank for one in job.workers])


def see_off():
    """See to it that the end of this process, which has joined a job, is noticed even if it takes no part in it."""
    job = cluster.current()
    if job is not None and job.size > 1 and job.workers and job.servers and not job.is_seen_off:
        job.is_seen_off = True
        cluster.at_exit(lambda: job.takes_part or _part(job))


def _part(job):
    name = name_of(job)
    if job.role == "worker":
        parting.say_goodbye(_mpi(job), job.index, [one.rank for one in job.servers], name)
    else:
        show_presence()
        parting.turn_away(_mpi(job), job.index, [one.rank for one in job.workers], name)


def name_of(job):
    """The function that says who a rank is."""
    members = {one.rank: one for one in (*job.workers, *job.servers)}

    def name(rank):
        one = members[rank]
        return f"{one.role} {one.index} (rank {rank}, host {one.host})"
    return name


def _mpi(job):
    from fleet_mpi.wire.mpi import MPITransport
    return MPITransport(job.comm, name_of(job))


def _over_mpi(job):
    return Link(job.index, _mpi(job), [one.rank for one in job.servers], name_of(job))


def _embedded(distribution):
    """The link of a worker that is alone, to servers that begin with their first values."""
    cluster.tell_if_alone()
    return embedded(distribution, [started_scope(distribution, index) for index in range(len(distribution.endpoints))])


def embedded(distribution, scopes):
    """The link to servers within this process, one for each scope, which do their part whenever the worker waits."""
    network, ranks = Network(), list(range(len(scopes)))
    servers = [new_server(distribution, index, network.transport(index), [len(ranks)], ranks, scopes[index])
               for index in ranks]

    def serve():
        return any([server.advance() for server in servers])
    return Link(0, Loopback(network, len(ranks), on_wait=serve), ranks)


def new_server(distribution, index, transport, workers, servers, scope, names=str):
    """Server number ``index`` over a transport, with the ranks of all workers and servers and the scope's values."""
    half = modes.server_half(distribution.mode.name, distribution.options, workers=len(workers))
    server = Server(transport, index, workers, servers, describe(distribution), half, distribution.fingerprint(), names)
    server.before_update = _schedule(distribution, server, scope)
    server.snapshots.counters = lambda: {name: scope.array(name) for name in distribution.counters()}
    take_values(distribution, server, scope)
    server.loaded_from = distribution.loaded_from
    return server


def started_scope(distribution, index):
    """A scope with the first values of a server's shards."""
    scope = Scope()
    Executor(CPUPlace()).run(server_startup(distribution, index), scope=scope)
    return scope


def _schedule(distribution, server, scope):
    """The function that moves schedules on before an update; None where no rate is computed."""
    if distribution.rate_program is None:
        return None
    executor = Executor(CPUPlace())
    wanted = [name for name in server.rates if name not in distribution.fed_rates]

    def move_on(steps):
        for name in distribution.fed_rates:
            scope.array(name)[...] = server.rates[name]
        for _ in range(max(1, steps)):
            values = executor.run(distribution.rate_program, fetch_list=wanted, scope=scope)
        for name, value in zip(wanted, values):
            server.rates[name][...] = np.reshape(value, -1)
    return move_on
