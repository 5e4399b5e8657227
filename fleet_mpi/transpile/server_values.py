"""The values of a server's shards: from the scope that its startup program filled to its tables, and back after the
service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.arrays import to_host
from fleet_mpi.errors import CheckpointDamaged, UsageError
from fleet_mpi.parameter_server.tables.base import KEYS, VALUES
from fleet_mpi.transpile.server_program import WHOLE, scope_name, shards_of, state_name

if TYPE_CHECKING:
    from typing import Any

    from fleet_mpi.program.engine.scope import Scope
    from fleet_mpi.transpile.distribution import Distribution


def take_values(distribution: Distribution, server: Any, scope: Scope) -> None:
    """Let a server's tables have the values of the scope, and the scope's variables be views of the tables."""
    numbers = []
    for shard in shards_of(distribution, server.index):
        table, name = server.table_of(shard.variable), scope_name(shard)
        values = scope.array(name)
        if values is None:
            raise UsageError(f"server {server.index}: {name!r} has no value: run the server's startup program first")
        view = table.param(shard.variable, shard.block)
        view[...] = to_host(values)
        scope.var(name).put(view)
        scope.erase([name + WHOLE])
        for state, held in _states(distribution, shard):
            values = scope.array(held)
            if values is not None:
                table.set_state(shard.variable, shard.block, state, to_host(values))
                scope.erase([held])
                if values.size == 1:
                    numbers.append((held, to_host(values).item(), (table, shard, state)))
    _check_numbers(distribution, numbers)
    for name in distribution.growing:
        _take_rows(distribution, name, server.table_of(name).columns, scope)
    for name in server.rates:
        if scope.array(name) is not None:
            server.rates[name][...] = to_host(scope.array(name))


def give_back(distribution: Distribution, server: Any, scope: Scope) -> None:
    """After the service, let the scope have the states and rates too, as it has the parameters."""
    for shard in shards_of(distribution, server.index):
        for state, held in _states(distribution, shard):
            scope.var(held).put(_state(server.table_of(shard.variable), shard, state))
    for table in distribution.growing:
        for column, name in _columns(distribution, table):
            scope.var(name).put(server.table_of(table).columns.get(column))
    for name, rate in server.rates.items():
        scope.var(name).put(rate)


def _columns(distribution, table):
    """(column, its name in the server's scope) of a table that grows."""
    return [(VALUES, table), *distribution.states_of(table)]


def _take_rows(distribution, table, columns, scope):
    """The rows that were loaded into the scope, if any; else the table begins without."""
    loaded = {column: scope.array(name) for column, name in _columns(distribution, table)}
    if loaded[KEYS] is not None:
        columns.take({column: to_host(array) for column, array in loaded.items() if array is not None}, True)
        scope.erase([name for _, name in _columns(distribution, table)])


def _states(distribution, shard):
    """(the rule's state, its name in the server's scope) of a shard."""
    return [(state, state_name(variable, shard, distribution))
            for state, variable in distribution.states_of(shard.variable)]


def _state(table, shard, state):
    return table.state(shard.variable, shard.block, state)


def _check_numbers(distribution, numbers):
    """Variables that are updated in one call share their beta powers and the like: these must be equal."""
    for held, given, where in numbers:
        kept = _state(*where).item()
        if not np.array_equal(kept, given, equal_nan=True):
            raise CheckpointDamaged(f"{(distribution.loaded_from or ['this scope'])[0]}: {held} is {given}, but {kept} "
                                    f"for a variable that is updated together with it: were both saved by the same "
                                    f"training?")
