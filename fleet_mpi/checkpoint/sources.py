"""Where the persistable variables of a program were saved: a file each, one for all, or parameters and the rest apart.

Knows names and files; whose values they become is decided above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.checkpoint import formats
from fleet_mpi.checkpoint.folders.saved_files import SavedFiles, read_settled
from fleet_mpi.checkpoint.variables import choose, is_other, is_parameter, is_persistable
from fleet_mpi.errors import CheckpointMissing

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Iterator

    from fleet_mpi.checkpoint.formats import Format, Value
    from fleet_mpi.checkpoint.variables import AnyProgram
    from fleet_mpi.program.graph.variable import Variable


class Source:
    """A folder, and the files in it: none are named where each variable has its own; one has all; two are those of
    ``fluid.save``, the second of which may be missing where nothing but parameters persists."""

    def __init__(self, folder: str | os.PathLike[str], files: Iterable[str] = ()) -> None:
        self.folder, self.files = str(folder), tuple(files)

    def read(self, program: AnyProgram, names: Iterable[str]) -> Iterator[Value]:
        """Yield some persistable variables; of those that come twice, the last values count."""
        names = set(names)

        def read(files: SavedFiles) -> Iterator[Value]:
            for format, saved in self._parts(program):
                wanted = sorted(name for name in saved if name in names)
                if wanted:
                    self._require(files, format, wanted)
                    yield from format.read(files, wanted, saved)
        return read_settled(self.folder, read)

    def has(self, program: AnyProgram, names: Iterable[str]) -> bool:
        """Whether there are files for these variables."""
        try:
            files, names = SavedFiles(self.folder), set(names)
        except CheckpointMissing:
            return False  # the folder itself is still to be made
        if not self.files:
            return all(map(files.has, formats.of(None).files(names, files)))
        return all(files.has(file) for format, saved in self._parts(program) if names.intersection(saved)
                   for file in format.files(saved, files))

    def names(self, program: AnyProgram) -> list[str]:
        """The files that all persistable variables of a program are in."""
        return [file for format, saved in self._parts(program) for file in format.files(saved)]

    def _parts(self, program: AnyProgram) -> list[tuple[Format, dict[str, Variable]]]:
        """(format, {name: variable} of what it has)."""
        predicates = (is_persistable,) if len(self.files) < 2 else (is_parameter, is_other)
        chosen = [choose(program, None, predicate) for predicate in predicates]
        return [(formats.of(file), saved) for file, saved in zip(self.files or (None,), chosen) if saved]

    def _require(self, files: SavedFiles, format: Format, names: list[str]) -> None:
        if len(self.files) == 2 and format.files(names) == [self.files[0]] and not files.has(self.files[0]):
            path = f"{self.folder}/{self.files[0]}".removesuffix(".pdparams")
            raise CheckpointMissing(f"{path}.pdparams: no such file; is {path!r} what save() was given?")


class Chosen(Source):
    """As Source, where only some variables were saved; a file for all has these and no others."""

    def __init__(self, folder: str | os.PathLike[str], file: str | None, chosen: dict[str, Variable]) -> None:
        super().__init__(folder, [file] if file is not None else ())
        self.chosen = chosen

    def _parts(self, program: AnyProgram) -> list[tuple[Format, dict[str, Variable]]]:
        return [(formats.of(self.files[0] if self.files else None), self.chosen)]


def read_values(folder: str, names: Collection[str], filename: str | None = None,
                saved: Collection[str] = ()) -> Iterator[Value]:
    """Yield some variables of a folder, one after the other, all from one state of it.

    Where they are all in one file, ``saved`` are the names of all that it holds. If the folder is saved to meanwhile,
    names come again: the last values count.
    """
    yield from read_settled(folder, lambda files: formats.of(filename).read(files, names, saved))
