"""A scope bound to a connection: a worker's session with its servers, and a server's values.

A worker's session belongs to a scope: the scope's parameters and gradients become views of the connection's flat
arrays, so that what an executor computes needs no copy to be sent (on a device it does: ``device_copies``). Servers
compute on the host. Without other processes (a world of one) the server runs inside the worker, over loopback, whenever
the worker waits.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fleet_mpi.arrays import DistantTable, Rows, is_host, to_host, to_module
from fleet_mpi.connections import server as servers_part, worker as workers_part
from fleet_mpi.connections.terms import Terms, Uplink
from fleet_mpi.connections.worker import WorkerConnection
from fleet_mpi.errors import UsageError
from fleet_mpi.parameter_server import tables
from fleet_mpi.parameter_server.description import Description, rate
from fleet_mpi.parameter_server.recipes import Recipe
from fleet_mpi.parameter_server.server import Server
from fleet_mpi.parameter_server.state import ServerState
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.frame import Clock
from fleet_mpi.program.engine.places import CPUPlace
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.runtime.device_copies import DeviceSide
from fleet_mpi.transpile.distribution import Distribution
from fleet_mpi.transpile.server_program import server_startup
from fleet_mpi.transpile.server_values import give_back, take_values
from fleet_mpi.wire.transport import Transport

SESSION = "@PARAMETER_SERVER@"  # the variable of a scope that holds its session


def describe(distribution: Distribution) -> Description:
    """What the client and the servers of a job must know."""
    rows = distribution.row_placement
    by_rows = tuple(tables.described("rows", one.name, one.shape, one.dtype, rows.of_variable(one.name),
                                     distribution.recipes[one.name]) for one in rows.variables)
    growing = tuple(tables.described("growing", one.name, one.width, one.dtype, distribution.recipes[one.name],
                                     one.init, one.key, one.keeping, not distribution.keeps_states)
                    for one in distribution.growing.values())
    recipes = distribution.recipes
    if not distribution.keeps_states:
        recipes = {name: Recipe("sgd", rate=one.rate) for name, one in recipes.items()}  # a rule without states
    return Description(distribution.placement, recipes, distribution.sent_rates, (*by_rows, *growing),
                       distribution.rate_dtypes, distribution.keeps_states)


def terms_of(distribution: Distribution) -> Terms:
    """What a connection needs of a distribution."""
    return Terms(describe(distribution), tuple(distribution.endpoints), distribution.workers, distribution.worker,
                 distribution.mode.name, distribution.options, distribution.fingerprint())


class WorkerSession:
    """One worker's connection, in one scope."""

    def __init__(self, distribution: Distribution, scope: Scope, uplink: Uplink | None = None):
        self.distribution, self.scope = distribution, scope
        self.connection = WorkerConnection(terms_of(distribution), uplink, partial(_embedded, distribution))
        self.client, self.half = self.connection.client, self.connection.half
        self.table_numbers = self.connection.table_numbers
        self.loaded_from, self.job = self.connection.loaded_from, self.connection.job
        self.xp: Any = np
        self.device: DeviceSide | None = None  # where the program computes on one
        self.has_started = self._install()
        if self.connection.cluster is not None:
            Clock.process_worker = self.connection.cluster.index
        self.connection.finish_at_exit(self.finish)

    @property
    def is_over(self) -> bool:
        """Whether it has said goodbye."""
        return self.connection.is_over

    @property
    def steps(self) -> int:
        """How many exchanges it has behind it."""
        return self.connection.steps

    def _install(self):
        """Let the scope's parameters and gradients lie in the client's flat arrays; values stay.

        Returns whether there were values: the startup program has run.
        """
        client = self.client
        had_values = all([self.scope.array(name) is not None for name in client.layout.variables])
        self._use(self.connection.views(client.params), self.connection.views(client.grads))
        for number, table in enumerate(client.description.row_tables):
            # For programs besides the trainer's, which look rows up in a table of the scope.
            holder = self.scope.var(table.name)
            holder.put(None)
            holder.value = DistantTable(table.shape, table.dtype, self._fetch_from(number))
        return had_values

    def _use(self, params, grads):
        """Let the scope's parameters, with their values, and its gradients be these arrays."""
        gradients = self.distribution.gradients if self.distribution.keeps_states else {}
        self.params, self.grads = params, {gradients[name]: grads[name] for name in params if name in gradients}
        self._return_home()

    def _return_home(self):
        """Let the scope's arrays be those that are sent, also where a program on another place has moved them."""
        for name, home in self.params.items():
            known = self.scope.array(name)
            if known is not home:
                if known is not None:
                    home[...] = to_module(known, self.xp)
                self.scope.var(name).put(home)
        for name, home in self.grads.items():
            self.scope.var(name).put(home)
        for name in self.distribution.sent_rates if self.xp is np else ():
            rate = self.scope.array(name)
            if rate is not None and not is_host(rate):
                self.scope.var(name).put(to_host(rate))

    def move_to(self, xp: Any) -> Callable[[], None] | None:
        """Before a plan is made: let parameters and gradients lie where ``xp`` computes.

        Returns what is to be called before each step; None: nothing is.
        """
        if xp is self.xp:
            self._return_home()
        else:
            self.xp = xp
            self._move_to_host() if xp is np else self._move_to_device()
        return None if self.device is None else self.device.begin_step

    def _move_to_device(self):
        client = self.client
        self.device = device = DeviceSide(client.layout, self.xp, self.distribution.keeps_states)
        client.lie_in(device.params.host, client.grads if device.grads is None else device.grads.host)
        self._use(device.params.views, {} if device.grads is None else device.grads.views)

    def _move_to_host(self):
        self.device = None
        self._use(self.connection.views(self.client.params), self.connection.views(self.client.grads))

    def _fetch_from(self, number):
        return lambda ids, out: self.client.pull_rows({number: ids}, {number: [out]})

    def bound_take(self, table: str, rows: Rows) -> Callable[[], None]:
        """What keeps a row gradient of a plan, on the host or a device, for the next exchange."""
        return partial(self.connection.take_rows if self.device is None else self.device.take_rows, table, rows)

    def bound_send(self, variable: str) -> Callable[[], None] | None:
        """What is to be done when what is sent of a variable was computed; None on the host."""
        return None if self.device is None else partial(self.device.sent.ready, variable)

    def bound_exchange(self) -> Callable[[], None]:
        """What ends a step of a plan; it looks for its arrays once, for they stay as long as the plan does."""
        return _Exchange(self)

    def exchange(self) -> None:
        """What ends a step, with the arrays that the scope has now."""
        self.bound_exchange()()

    def rate(self, name: str) -> float:
        """A learning rate that the servers compute, as of the last update."""
        return ServerState(self.client).fetch(rate(name)).item()

    def pull(self, with_rest: bool = True) -> None:
        """Take the servers' parameters as they are; and what workers keep, from where the servers loaded theirs."""
        self._take_from_device()
        self.connection.pull()
        self._give_to_device()
        if with_rest and self.loaded_from:
            self.distribution.load_rest(self.loaded_from, self.scope)

    def flush(self) -> None:
        """Send what is left, and take the parameters it leads to."""
        self._take_from_device()
        self.connection.flush()
        self._give_to_device()

    def finish(self) -> None:
        """Send what is left, say goodbye. May be called again."""
        if not self.is_over:
            self._take_from_device()
            self.connection.finish()
            self._give_to_device()

    def _take_from_device(self):
        """Before an exchange that no step ends with."""
        if self.device is not None:
            self._return_home()
            self.device.gather()

    def _give_to_device(self):
        if self.device is not None:
            self.device.params.spread()


class _Exchange:
    """The end of a step: a session's learning rates and gradients out, its parameters in."""

    def __init__(self, session):
        self.session, self.connection = session, session.connection
        self.rates = self.run = None  # where the arrays lie is known when the first step of a plan ends

    def __call__(self):
        if self.run is None:
            self._look()
        self.run()

    def _look(self):
        session = self.session
        self.connection.require_open()
        names = session.distribution.sent_rates
        self.rates = [session.scope.array(name) for name in names]
        for name, array in zip(names, self.rates):
            if array is None:
                raise UsageError(f"the learning rate {name!r} has no value: run the startup program first")
        self.run = self._run_on_host if session.device is None else self._run_on_device

    def _run_on_host(self):
        rates = self.connection.client.rates
        for position, array in enumerate(self.rates):
            rates[position] = array.item(0)
        self.connection.exchange()

    def _run_on_device(self):
        device, connection = self.session.device, self.connection
        rates = [device.downloads.fetch(array) for array in self.rates]
        for table, rows in device.gather():
            connection.take_rows(table, rows)
        for position, array in enumerate(rates):
            connection.client.rates[position] = array.item(0)
        connection.exchange()
        device.params.spread()


def session_of(scope: Scope) -> Any:
    """The session of a scope, or None."""
    holder = scope.find_var(SESSION)
    return None if holder is None else holder.value


def connect(distribution: Distribution, scope: Scope, uplink: Uplink | None = None) -> WorkerSession:
    """The session of a scope for a distribution, made (over ``uplink``, if one is given) if there is none."""
    known = session_of(scope)
    if known is None or known.is_over and known.distribution is not distribution:
        _refuse_a_second(uplink)
        holder = scope.var(SESSION)
        known = holder.value = WorkerSession(distribution, scope, uplink)
        holder.replaced()  # plans are bound to the session before
    elif known.distribution is not distribution:
        raise UsageError("this scope is connected to the servers of another program: finish that training first "
                         "(fleet.stop_worker or exe.close)")
    return known


def _refuse_a_second(uplink):
    """A worker is one to its servers: two scopes that push for it would be taken for one that goes wrong."""
    if uplink is None and workers_part.of_process() is not None:
        raise UsageError("this process is training in another scope already, and is one worker: go on in that scope, "
                         "or finish that training first (fleet.stop_worker or exe.close)")


def disconnect(distribution: Distribution, scope: Scope) -> None:
    """End the session of a scope, if it is one for this distribution."""
    known = session_of(scope)
    if known is not None and known.distribution is distribution:
        known.finish()


def serve(distribution: Distribution, index: int, scope: Scope) -> Server:
    """Be server number ``index`` until all workers have left; its shards' values come from the scope."""
    server = servers_part.serve(terms_of(distribution), index, partial(_prepare, distribution, scope))
    give_back(distribution, server, scope)
    return server


def _embedded(distribution):
    """The uplink of a worker that is alone, to servers that begin with their first values."""
    return embedded(distribution, [started_scope(distribution, index) for index in range(len(distribution.endpoints))])


def embedded(distribution: Distribution, scopes: list[Scope]) -> Uplink:
    """The uplink to servers within this process, one for each scope, which do their part whenever the worker waits."""
    return servers_part.embedded(terms_of(distribution), [partial(_prepare, distribution, scope) for scope in scopes])


def new_server(distribution: Distribution, index: int, transport: Transport, workers: list[int], servers: list[int],
               scope: Scope, names: Callable[[int], str] = str) -> Server:
    """Server number ``index`` over a transport, with the ranks of all workers and servers and the scope's values."""
    return servers_part.new_server(terms_of(distribution), index, transport, workers, servers,
                                   partial(_prepare, distribution, scope), names)


def _prepare(distribution, scope, server):
    """Give a server the values, schedules and counters of a scope."""
    server.before_update = _schedule(distribution, server, scope)
    server.snapshots.counters = lambda: {name: scope.array(name) for name in distribution.counters()}
    take_values(distribution, server, scope)
    server.loaded_from = distribution.loaded_from


def started_scope(distribution: Distribution, index: int) -> Scope:
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
