"""The seam of file formats: what saving and loading ask of one. Knows names and arrays, no program and no rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from fleet_mpi.arrays import Array
    from fleet_mpi.checkpoint.folders.saved_files import SavedFiles
    from fleet_mpi.checkpoint.folders.transaction import Save

Lod = tuple[tuple[int, ...], ...]  # the offsets of each level, outermost first


class Value(NamedTuple):
    """A variable's value: an array of the host or a device, and the offsets of each LoD level."""

    name: str
    array: Array
    lod: Lod = ()


class Format(Protocol):
    """One layout of variables in the files of a folder, made for the ``filename`` argument of a save or load.

    Files are opened through ``Save`` and ``SavedFiles``, never by path: these make a save complete or absent.
    """

    def __init__(self, filename: str | None) -> None: ...

    @staticmethod
    def takes(filename: str | None) -> bool:
        """Whether a ``filename`` argument means this format."""
        ...

    def write(self, save: Save, values: Iterable[Value]) -> None:
        """Write values, which come in name order, one at a time: the next array is fetched when it is asked for."""
        ...

    def read(self, files: SavedFiles, names: Collection[str], saved: Collection[str]) -> Iterator[Value]:
        """Yield the values of some variables, in name order; ``saved`` are the names of all that the save holds.

        Raises CheckpointDamaged, with the names, where a variable or a file is missing or damaged.
        """
        ...

    def files(self, names: Iterable[str], folder: SavedFiles | None = None) -> list[str]:
        """The files that belong to these variables: as saved in a folder, or as a save writes them."""
        ...

    def names(self, folder: SavedFiles) -> list[str] | None:
        """The variables that a folder holds in this format, in name order; None where the files do not say."""
        ...
