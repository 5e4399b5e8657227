"""Saving and loading all that a job keeps: whole variables, complete or absent, for any number of servers and for none.

Files are written by ``checkpoint``'s transaction and formats; its ``values`` know programs, ours are arrays. A note in
the folder's manifest tells in which files a save lies, how many steps were done, and at which rates.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from fleet_mpi.checkpoint import formats
from fleet_mpi.checkpoint.folders.saved_files import SavedFiles, read_settled
from fleet_mpi.checkpoint.folders.transaction import saving_into
from fleet_mpi.checkpoint.formats import Value
from fleet_mpi.checkpoint.formats.one_file import OneFile
from fleet_mpi.errors import CheckpointDamaged, UsageError
from fleet_mpi.parameter_server.tables.base import KEYS
from fleet_mpi.ranks.ending import amid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet_mpi.checkpoint.folders.transaction import Author, Save
    from fleet_mpi.door.values import Values

_NOTE = "arrays of a job"
_MODEL = "model"   # the name of a file, where only its format is told


def file_for(format: str | None) -> str | None:
    """The name of the file for all parameters that a ``format`` means; None: a file for each."""
    if format is None or "." in format:
        return format
    filename = f"{_MODEL}.{format}"
    if isinstance(formats.of(filename), OneFile):
        raise UsageError(f"save: no format is called {format!r}: give none for a file per variable, or the name of a "
                         f"file, such as model.bin, for all of them in one")
    return filename


@amid("a save")
def save(values: Values, folder: str | os.PathLike[str], filename: str | None, author: Author | None,
         notes: dict[str, Any]) -> None:
    """Write all values into a folder, as one transaction; states lie beside parameters, in a file of their own."""
    with saving_into(str(folder), author) as made:
        with values.at_one_moment():
            for one, names in _files(values, filename).items():
                formats.of(one).write(made, _read(made, values, names))
        made.note(_NOTE, file=filename, grows=values.growing, **notes)


def _read(save: Save, values: Values, names: list[str]) -> Iterator[Value]:
    for name, array in values.read(names):
        save.has(array)
        yield Value(name, array)


def _files(values: Values, filename: str | None) -> dict[str | None, list[str]]:
    """{file, or None for one per variable: the names in it}."""
    if filename is None:
        return {None: values.names}
    states, (stem, ending) = values.states, os.path.splitext(filename)
    found: dict[str | None, list[str]] = {filename: [name for name in values.names if name not in states]}
    return {**found, f"{stem}.states{ending}": states} if states else found


def notes_of(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What was noted with the last save into a folder; nothing where another hand wrote it."""
    return dict(SavedFiles(str(folder)).manifest.notes.get(_NOTE, {}))


def read(values: Values, folder: str | os.PathLike[str], filename: str | None, states: bool) -> Iterator[Value]:
    """Yield the saved values; of those that come twice, the last ones count."""
    left_out = () if states else values.states
    wanted = {one: [name for name in names if name not in left_out]
              for one, names in _files(values, filename).items()}

    def read_all(files: SavedFiles) -> Iterator[Value]:
        for (one, chosen), saved in zip(wanted.items(), _files(values, filename).values()):
            if chosen:
                yield from formats.of(one).read(files, chosen, saved)
    return read_settled(str(folder), read_all)


def load(values: Values, folder: str | os.PathLike[str], notes: dict[str, Any],
         states: bool) -> Iterator[tuple[str, Any]]:
    """Yield (name, array) of all saved values; all are read and checked before the first one comes."""
    filename = notes.get("file")
    if notes:
        _refuse_other_tables(values, set(notes.get("grows", ())), str(folder))
    misfits, rows = {}, RowsCheck(values)
    for name, array, _ in read(values, folder, filename, states):
        if not values.fits(name, array):
            misfits[name] = array
        rows.see(name, array)
    values.refuse_misfits(misfits, str(folder))
    rows.refuse_damage(str(folder))
    for name, array, _ in read(values, folder, filename, states):
        yield name, array


def _refuse_other_tables(values: Values, saved: set[str], source: str) -> None:
    """CheckpointDamaged where a table has a height here and had none when it was saved, or the other way round."""
    for name in sorted(saved.symmetric_difference(values.growing).intersection(values.names)):
        had, has = ("no height", "one") if name in saved else ("a height", "none")
        raise CheckpointDamaged(f"{source}: table {name!r} was saved with {had}, and is declared with {has}: its rows "
                                f"are by {'id' if name in saved else 'number'} there; declare it as it was saved")


class RowsCheck:
    """Whether the columns of tables that grow belong together, from arrays that come one by one."""

    def __init__(self, values: Values) -> None:
        self.table_of = {name: table for table in values.growing for name in values.columns_of(table)}
        self.heights: dict[str, dict[str, int]] = {}   # by table and name
        self.doubled: list[str] = []

    def see(self, name: str, array: np.ndarray) -> None:
        """Take note of one."""
        if name in self.table_of:
            self.heights.setdefault(self.table_of[name], {})[name] = len(array)
        if name.endswith(KEYS) and len(np.unique(array)) < len(array):
            self.doubled.append(name)

    def refuse_damage(self, source: str) -> None:
        """CheckpointDamaged for columns of different heights, and for an id that comes twice."""
        for table, heights in self.heights.items():
            if len(set(heights.values())) > 1:
                raise CheckpointDamaged(f"{source}: the files of table {table!r} have {heights} rows, expected the "
                                        f"same number: they are not of one save")
        if self.doubled:
            raise CheckpointDamaged(f"{source}: an id comes twice in {', '.join(self.doubled)}")
