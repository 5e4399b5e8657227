"""A server's program by the calls of ``fluid.io``, before it serves (and after): the original's way to resume.

A server has blocks of variables in its scope. From files of whole variables it takes its own, whatever number of
servers there was before; it saves what it has, which the others' blocks make whole again (``formats.tensor_files``).
What workers keep themselves is not its business.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import notices
from fleet_mpi.checkpoint.formats.base import Value
from fleet_mpi.checkpoint.formats.tensor_files import TensorFiles
from fleet_mpi.checkpoint.sources import Source
from fleet_mpi.checkpoint.values.growing import growing_columns, refuse_damaged
from fleet_mpi.checkpoint.values.scope import differences, refuse_differences, value_in
from fleet_mpi.checkpoint.variables import choose, is_persistable
from fleet_mpi.errors import UsageError
from fleet_mpi.parameter_server.description import Inventory
from fleet_mpi.parameter_server.tables.base import KEYS, SCORES
from fleet_mpi.runtime import sessions
from fleet_mpi.transpile.server_program import scope_name, shards_of, state_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from fleet_mpi.checkpoint.folders.transaction import Save
    from fleet_mpi.checkpoint.values.growing import GrowingColumns
    from fleet_mpi.checkpoint.variables import Predicate
    from fleet_mpi.parameter_server.description import StateKey
    from fleet_mpi.placement.shard import Shard
    from fleet_mpi.program.engine.scope import Scope
    from fleet_mpi.program.graph.variable import Variable
    from fleet_mpi.transpile.distribution import Distribution

    Place = tuple[Shard | None, str]   # a shard, or None for a number, and its name in the scope


class BlockValues:
    """The values of a server's program, in a scope; ``program`` is the whole one."""

    def __init__(self, distribution: Distribution, index: int, scope: Scope) -> None:
        self.distribution, self.index, self.scope = distribution, index, scope
        self.program = distribution.origin
        self.inventory = Inventory(sessions.describe(distribution))

    def choose(self, vars: Iterable[Variable | str] | None = None,
               predicate: Predicate | None = None) -> dict[str, list[Place]]:
        """{variable of the whole program: where this server has parts of it}."""
        listed = None if vars is None else {getattr(var, "name", var) for var in vars}
        chosen = choose(self.program, None, (predicate or is_persistable) if vars is None else is_persistable)
        found = {}
        for name, key in self.inventory.by_program_name(self.distribution.counters()).items():
            places = list(self._places(name, key)) if name in chosen else []
            if places and (listed is None or listed & {name, *(held for _, held in places)}):
                found[name] = places
        return dict(sorted(found.items()))

    def at_one_moment(self, chosen: dict[str, list[Place]]) -> contextlib.AbstractContextManager[None]:
        """A server that saves does not serve meanwhile."""
        return contextlib.nullcontext()

    def add(self, save: Save, chosen: dict[str, list[Place]], filename: str | None = None) -> None:
        """Let a save have some variables, a file for each block: several servers save into one folder."""
        if self.distribution.growing:
            raise UsageError(f"table {next(iter(self.distribution.growing))!r} has a row for any id, of which this "
                             f"server has some: save it on a worker, before stop_worker")
        if filename is not None:
            notices.once("blocks",
                         f"a server has blocks of variables, and saves each in a file of its own, not in {filename!r}")
        for name, places in chosen.items():
            for shard, held in places:
                if shard is None and name in save.files:
                    continue   # one number for all blocks of a variable
                array = value_in(self.scope, held).array
                if shard is None or not shard.is_cut:
                    TensorFiles().write(save, [Value(name, array)])
                else:
                    rows = [(one.row_begin, one.rows) for one in self.inventory.shards(shard.variable)]
                    TensorFiles().write_block(save, name, shard.block, rows, array)

    def load(self, source: Source, vars: Iterable[Variable | str] | None = None,
             predicate: Predicate | None = None) -> None:
        """Let the scope have this server's blocks of what is in a Source, if all of it fits."""
        whole = choose(self.program, None, is_persistable)
        found: dict[str, list[tuple[str, np.ndarray]]] = {}
        wrong: dict[str, list[str]] = {}
        if len(source.files) == 1 and not source.has(self.program, whole):
            source = Source(source.folder)   # servers saved it: a file for each block
        grown = self._grown(source, choose(self.program, None, predicate or is_persistable) if vars is None else vars)
        wanted = self._needed(self.choose(vars, predicate), source)
        for name, array, _ in source.read(self.program, wanted):
            wrong[name] = list(differences(name, tuple(whole[name].shape), whole[name]._dtype, array))
            found[name] = [(held, _part(array, shard)) for shard, held in wanted[name]] if not wrong[name] else []
        refuse_differences(source.folder, wrong)
        for held, part in [*(one for places in found.values() for one in places), *grown]:
            self.scope.var(held).get_tensor().set(part)
        # Workers learn it when they greet: their own values are not to replace these, and what they keep themselves is
        # there.
        self.distribution.loaded_from = [os.path.abspath(source.folder), source.files]

    def _grown(self, source: Source, chosen: Iterable[Any]) -> list[tuple[str, np.ndarray]]:
        """(name in the scope, column) of this server's rows of the tables that grow."""
        names = {getattr(one, "name", one) for one in chosen}
        found: list[tuple[str, np.ndarray]] = []
        for table in growing_columns(self.inventory).values():
            if table.name in names:
                found += self._columns(table, source)
        return found

    def _columns(self, table: GrowingColumns, source: Source) -> Iterator[tuple[str, np.ndarray]]:
        rows, columns = table.rows_in(source, self.program), {}
        for name, array, _ in source.read(self.program, table.names):
            column = table.from_file(name, array, rows)
            if column is not None:
                columns[name] = column
        refuse_damaged(source, table.name, {name: len(columns[name]) for name in table.spare}, rows)
        columns |= {table.name + key.state: array for key, array in table.read_beside(source, rows)}
        # Imported with the first such table, as tables are.
        from fleet_mpi.parameter_server.tables.growing.description import rows_of_server
        mine = rows_of_server(columns[table.name + KEYS], self.index, len(self.distribution.endpoints))
        for name, array in columns.items():
            yield name, array[mine] if len(array) == rows and self._is_by_row(table, name) else array

    @staticmethod
    def _is_by_row(table: GrowingColumns, name: str) -> bool:
        return name in table.spare or name == table.name + SCORES

    def _needed(self, chosen: dict[str, list[Place]], source: Source) -> dict[str, list[Place]]:
        """A rate that servers compute is computed before it is used: it may be missing."""
        kinds = self.inventory.by_program_name(self.distribution.counters())
        return {name: places for name, places in chosen.items()
                if kinds[name].kind != "rate" or source.has(self.program, [name])}

    def _places(self, name: str, key: StateKey) -> Iterator[Place]:
        if key.kind in ("rate", "counter"):
            yield None, name
            return
        for shard in shards_of(self.distribution, self.index):
            if shard.variable == key.variable:
                yield (shard if self.inventory.is_spread(key) else None,
                       scope_name(shard) if key.kind == "param" else state_name(name, shard, self.distribution))


def _part(array: np.ndarray, shard: Shard | None) -> np.ndarray:
    """A copy of the part of a whole value that belongs to a shard; a number belongs to all."""
    if shard is None:
        return array
    return np.array(array.reshape(-1)[shard.offset:shard.offset + shard.size].reshape(shard.shape))
