"""Values of a training whose parameters are on servers, in the files that one process writes and reads.

Files have the names of the untranspiled program, and its whole shapes: another number of servers, another way to
cut, or one process can load them. Parameters, optimizer states and the counters of schedules are the servers', all
of one moment; what else persists (statistics of batch normalisation, rates that workers set) is the worker's.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.arrays import ANY_HEIGHT
from fleet_mpi.checkpoint import formats
from fleet_mpi.checkpoint.formats import Value
from fleet_mpi.checkpoint.values.growing import by_program_name, growing_columns, refuse_damaged
from fleet_mpi.checkpoint.values.scope import differences, put_values, refuse_differences, value_in
from fleet_mpi.checkpoint.variables import choose, is_persistable
from fleet_mpi.errors import CheckpointDamaged, UsageError
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.ranks.ending import amid
from fleet_mpi.runtime import sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from fleet_mpi.checkpoint.folders.transaction import Save
    from fleet_mpi.checkpoint.sources import Source
    from fleet_mpi.checkpoint.values.growing import GrowingColumns
    from fleet_mpi.checkpoint.variables import Predicate
    from fleet_mpi.parameter_server.description import Inventory, StateKey
    from fleet_mpi.parameter_server.state import ServerState
    from fleet_mpi.program.engine.scope import Scope
    from fleet_mpi.program.graph.program import Program
    from fleet_mpi.program.graph.variable import Variable
    from fleet_mpi.runtime.sessions import WorkerSession
    from fleet_mpi.transpile.distribution import Distribution


def connected(what: str) -> WorkerSession:
    """The session of the global scope, with all that was pushed applied; UsageError where there is none."""
    session = sessions.session_of(global_scope())
    if session is None or session.is_over:
        raise UsageError(f"{what}: this worker is not connected to the servers: call it after the startup program (or "
                         f"init_worker), and before stop_worker or exe.close")
    session.flush()
    return session


class ServerValues:
    """A program's values, where the servers have some of them and the global scope the rest.

    None of the client's pushes may be in flight. ``program`` is another one with variables of the same names, if any.
    """

    def __init__(self, state: ServerState, distribution: Distribution, program: Program | None = None) -> None:
        self.state, self.program = state, program or distribution.origin
        self.counters = distribution.counters()
        self.keys = by_program_name(state.inventory, self.counters)
        self.growing = growing_columns(state.inventory)
        self.table_of = {name: table for table in self.growing.values() for name in table.names}

    def choose(self, vars: Iterable[Variable | str] | None = None,
               predicate: Predicate | None = None) -> dict[str, Variable]:
        """The variables meant; names that the program does not have are the servers' own, and passed over."""
        return choose(self.program, None, _chooser(vars, predicate))

    def at_one_moment(self, chosen: dict[str, Variable]) -> AbstractContextManager[None]:
        """The servers copy their part of these variables, and go on training."""
        for name in chosen:
            if name not in self.keys:
                value_in(global_scope(), name)   # a refusal comes before servers are asked
        beside = [key for table in self._whole_tables(chosen) for key in table.keys_beside().values()]
        return self.state.copied([*(self.keys[name] for name in chosen if name in self.keys), *beside])

    def add(self, save: Save, chosen: dict[str, Variable], filename: str | None = None) -> None:
        """Let a save have variables, from the servers' copies and from the scope."""
        formats.of(filename).write(save, self._read(save, chosen))
        for table in self._whole_tables(chosen):
            table.write_beside(save, self.state.fetch)

    def _whole_tables(self, chosen: dict[str, Variable]) -> list[GrowingColumns]:
        """The tables that grow and are saved with all of their states."""
        return [table for table in self.growing.values() if table.names <= set(chosen)]

    def _read(self, save: Save, chosen: dict[str, Variable]) -> Iterator[Value]:
        fetched = self.state.fetch_all([self.keys[name] for name in chosen if name in self.keys])
        for name in chosen:
            if name in self.keys:
                array = next(fetched)
                if name in self.table_of:
                    array = self.table_of[name].to_file(name, array)
                save.has(array)
                yield Value(name, array)
            else:
                tensor = value_in(global_scope(), name)
                yield Value(name, tensor.array, tensor.lod_offsets)

    @amid("a load")
    def load(self, source: Source, chosen: dict[str, Variable] | None = None) -> None:
        """Let the servers, which are running, and the scope have what was saved, or what is chosen of it.

        For one worker to call.
        """
        chosen = choose(self.program, None, is_persistable) if chosen is None else chosen
        tables = self._tables_to_load(chosen)
        mine = [name for name in chosen if name in self.keys]
        # All is looked at before anything is changed; the files are read a second time for that, not kept in memory.
        rows = {table.name: table.rows_in(source, self.program) for table in tables}
        self._refuse_misfits(source, {name: chosen[name] for name in mine}, rows)
        self.load_rest(source, chosen)
        stored: dict[str, tuple[np.ndarray, Callable[[], np.ndarray]]] = {}
        with self.state.frozen(alone=True):
            with self.state.storing() as store:
                for name, array, _ in source.read(self.program, mine):
                    if name in self.table_of:
                        self._store_column(store, name, array, rows)
                        continue
                    store(self.keys[name], array)
                    if self.keys[name].kind == "state" and array.size == 1:
                        stored[name] = array, functools.partial(self.state.fetch, self.keys[name])
                for table in tables:
                    for key, array in table.read_beside(source, rows[table.name]):
                        store(key, array)
            _check_numbers(source.folder, stored)

    def _tables_to_load(self, chosen: dict[str, Variable]) -> list[GrowingColumns]:
        """The tables that grow and are chosen; UsageError where only some columns of one are."""
        meant = [table for table in self.growing.values() if table.names & chosen.keys()]
        for table in meant:
            missing = sorted(table.names - chosen.keys())
            if missing:
                raise UsageError(f"load_vars: the rows of table {table.name!r}, which grows, are loaded with all that "
                                 f"belongs to them; the variables lack {', '.join(missing[:3])}: call "
                                 f"load_persistables")
        return meant

    def _store_column(self, store: Callable[[StateKey, np.ndarray], None], name: str, array: np.ndarray,
                      rows: dict[str, int]) -> None:
        table = self.table_of[name]
        column = table.from_file(name, array, rows[table.name])
        if column is not None:
            store(table.key_of(name), column)

    def _refuse_misfits(self, source: Source, chosen: dict[str, Variable], rows: dict[str, int]) -> None:
        """CheckpointDamaged unless all fits; a table that grows may have any height."""
        found: dict[str, list[str]] = {}
        heights: dict[str, dict[str, int]] = {name: {} for name in rows}
        for name, array, _ in source.read(self.program, chosen):
            shape, table = tuple(chosen[name].shape), self.table_of.get(name)
            if table is not None and (name in table.spare or name not in table.states):
                shape = (ANY_HEIGHT, *shape[1:])
            found[name] = list(differences(name, shape, chosen[name]._dtype, array))
            if table is not None and name in table.spare and array.ndim:
                heights[table.name][name] = len(array)
        refuse_differences(source.folder, found)
        for name in rows:
            refuse_damaged(source, name, heights[name], rows[name])

    def load_rest(self, source: Source, chosen: dict[str, Variable] | None = None) -> None:
        """Let the scope have what is not the servers', all of it or what is chosen."""
        load_rest(self.state.inventory, source, self.program, global_scope(), self.counters, chosen)

    def rest(self) -> list[str]:
        """The persistable variables that are not the servers'."""
        return rest_of(self.state.inventory, self.program, self.counters)


def load_rest(inventory: Inventory, source: Source, program: Program, scope: Scope,
              counters: Iterable[str] = (), chosen: dict[str, Variable] | None = None) -> None:
    """Let a worker's scope have what is not the servers', all of it or what is chosen."""
    chosen = choose(program, None, is_persistable) if chosen is None else chosen
    keys = by_program_name(inventory, counters)
    rest = {name: var for name, var in chosen.items() if name not in keys}
    if rest:
        put_values(scope, rest, source.read(program, list(rest)), source.folder)


def rest_of(inventory: Inventory, program: Program, counters: Iterable[str] = ()) -> list[str]:
    """The persistable variables of a program that are not the servers'."""
    keys = by_program_name(inventory, counters)
    return [name for name in choose(program, None, is_persistable) if name not in keys]


def _chooser(vars: Iterable[Variable | str] | None, predicate: Predicate | None) -> Predicate:
    """The predicate that means the variables listed, or the one given."""
    if vars is None:
        return predicate or is_persistable
    names = {getattr(var, "name", var) for var in vars}
    return lambda var: var.name in names


def _check_numbers(dirname: str, stored: dict[str, tuple[np.ndarray, Callable[[], np.ndarray]]]) -> None:
    """Variables that are updated in one call share their beta powers and the like: these must be equal."""
    for who, (array, read_back) in stored.items():
        kept = read_back()
        if not np.array_equal(kept.reshape(-1), array.reshape(-1), equal_nan=True):
            raise CheckpointDamaged(f"{dirname}: {who} is {array.reshape(-1)[0]}, but {kept.reshape(-1)[0]} for a "
                                    f"variable that is updated together with it: were both saved by the same training?")
