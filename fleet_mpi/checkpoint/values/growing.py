"""Tables that grow, between the servers that have their rows and the files that one process writes and reads.

In the files a table looks as in one process (``program.ops.sparse_table``): ids, values and states end with a spare
row, and an index finds the ids. Rows are in order of their ids: any number of servers writes the same files. What
servers know besides (scores, the number of updates) lies in files of its own, which need not be there. Where workers
train by themselves (geo), states are theirs: in files they begin, and are passed over in a load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.arrays import ANY_HEIGHT
from fleet_mpi.checkpoint.folders.saved_files import SavedFiles, read_settled
from fleet_mpi.checkpoint.formats.base import Value
from fleet_mpi.checkpoint.formats.tensor_files import TensorFiles
from fleet_mpi.errors import CheckpointDamaged
from fleet_mpi.kernels.reference import slots
from fleet_mpi.parameter_server.description import StateKey
from fleet_mpi.parameter_server.tables.base import KEYS, SCORES, UPDATES, looks_of
from fleet_mpi.program.ops.sparse_table import INDEX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fleet_mpi.checkpoint.folders.transaction import Save
    from fleet_mpi.checkpoint.sources import Source
    from fleet_mpi.checkpoint.variables import AnyProgram
    from fleet_mpi.parameter_server.description import Inventory


def by_program_name(inventory: Inventory, counters: Iterable[str] = ()) -> dict[str, StateKey]:
    """``Inventory.by_program_name``, and what follows from the ids of tables that grow: their indices, and states that
    servers do not have.
    """
    found = inventory.by_program_name(counters)
    return {**found, **{name: StateKey("state", table.name, KEYS) for table in growing_columns(inventory).values()
                        for name in (table.name + INDEX, *table.begun)}}


class GrowingColumns:
    """The columns of one table in files; ``states`` are {variable of the program: the rule's state}.

    ``begun`` are {variable: the value it begins with, how it looks} of states that are the workers'.
    """

    def __init__(self, inventory: Inventory, table: str) -> None:
        described = next(one for one in inventory.description.row_tables if one.name == table)
        recipe, kept = described.recipe, dict(inventory.recipe(table).states)
        # Imported with the first such table, as tables are.
        from fleet_mpi.parameter_server.tables.growing.rules import growing_rule
        rule = growing_rule(recipe.rule)
        initial = rule.initial(rule.complete(dict(recipe.hypers)))
        looks = looks_of(rule.states, (ANY_HEIGHT, described.width), described.dtype)
        states = {name: state for state, name in recipe.states if state in initial}
        self.name = table
        self.begun = {name: (initial[state], looks[state]) for name, state in states.items() if state not in kept}
        self.states = {name: state for name, state in states.items() if state in kept}
        self.spare = {table: 0.0, table + KEYS: slots.FREE,
                      **{name: initial[state] for name, state in self.states.items() if looks[state].is_spread}}
        self.beside = {name: state for state, name in recipe.states if state in (SCORES, UPDATES)}
        self.names = {table, table + KEYS, table + INDEX, *states}

    # ------------------------------------------------------------------ to files

    def to_file(self, name: str, array: np.ndarray) -> np.ndarray:
        """A column as it is in files; the index, and states that begin, are made from the ids."""
        if name == self.name + INDEX:
            return _index_of(array)
        if name in self.begun:
            first, look = self.begun[name]
            return np.full((len(array) + 1, *look.shape[1:]) if look.is_spread else look.shape, first, look.dtype)
        if name not in self.spare:
            return array
        return np.concatenate([array, np.full((1, *array.shape[1:]), self.spare[name], array.dtype)])

    def write_beside(self, save: Save, fetch: Callable[[StateKey], np.ndarray]) -> None:
        """Write what only servers know."""
        TensorFiles().write(save, (Value(name, fetch(key)) for name, key in self.keys_beside().items()))

    def keys_beside(self) -> dict[str, StateKey]:
        """{file: key} of what only servers know."""
        return {name: StateKey("state", self.name, state) for name, state in sorted(self.beside.items())}

    # ------------------------------------------------------------------ from files

    def rows_in(self, source: Source, program: AnyProgram) -> int:
        """How many rows were saved; CheckpointDamaged where the ids' index cannot be one."""
        index = next(array for _, array, _ in source.read(program, [self.name + INDEX]))
        found = slots.used(index) if index.dtype == np.int64 and index.ndim == 1 and len(index) else -1
        if found < 0:
            raise CheckpointDamaged(f"{source.folder}: {self.name}{INDEX} is no index of ids")
        return found

    def from_file(self, name: str, array: np.ndarray, rows: int) -> np.ndarray | None:
        """A column as servers take it, of so many rows; None for the index, and for states that are not theirs."""
        if name == self.name + INDEX or name in self.begun:
            return None
        return array[:rows] if name in self.spare else array

    def key_of(self, name: str) -> StateKey:
        """What servers call a column."""
        if name == self.name:
            return StateKey("param", name)
        return StateKey("state", self.name, self.states.get(name, KEYS))

    def read_beside(self, source: Source, rows: int) -> Iterator[tuple[StateKey, np.ndarray]]:
        """Yield what only servers know; what was not saved with these rows begins anew."""
        saved = {value.name: value.array for value in read_settled(source.folder, self._saved_beside)}
        for name, key in self.keys_beside().items():
            array = saved.get(name)
            if key.state == UPDATES:
                yield key, np.zeros(1, np.int64) if array is None or array.shape != (1,) else array.astype(np.int64)
            elif array is not None and array.shape == (rows,):
                yield key, array.astype(np.int32)

    def _saved_beside(self, files: SavedFiles) -> Iterator[Value]:
        names = [name for name in self.beside if files.has(name)]
        yield from TensorFiles().read(files, names)


def growing_columns(inventory: Inventory) -> dict[str, GrowingColumns]:
    """The tables that grow, by name."""
    return {key.variable: GrowingColumns(inventory, key.variable) for key in inventory.by_program_name().values()
            if key.kind == "param" and inventory.grows(key)}


def refuse_damaged(source: Source, name: str, heights: dict[str, int], rows: int) -> None:
    """CheckpointDamaged where the columns of a table are shorter than its index says."""
    short = {column: height for column, height in heights.items() if height < rows}
    if short:
        raise CheckpointDamaged(f"{source.folder}: the index of table {name!r} has {rows} ids, and there are fewer "
                                f"rows in {short}: the files are not of one save")


def _index_of(ids: np.ndarray) -> np.ndarray:
    """The index of these ids, each in the slot of its place."""
    keys = np.full(len(ids) + 1, slots.FREE, np.int64)
    index = np.full(slots.index_size(len(keys)), slots.NOT_THERE, np.int64)
    slots.find_slots(np.ascontiguousarray(ids), keys, index, np.empty_like(ids), True)
    return index
