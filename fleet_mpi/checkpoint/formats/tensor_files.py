"""A file per variable, named like it, with one tensor (the original's); a variable may be in blocks.

Servers that save before or after they serve write what each of them has: a block is a file ``NAME.block1``, its rows in
the tensor encoding, and the manifest says which rows each block has. Read, they are the whole variable again. The last
save decides: a variable that is saved whole has no blocks any more.
"""

import os
from collections.abc import Collection, Iterable, Iterator

import numpy as np

from fleet_mpi.arrays import Array
from fleet_mpi.checkpoint.folders import manifest
from fleet_mpi.checkpoint.folders.saved_files import SavedFiles
from fleet_mpi.checkpoint.folders.transaction import Save
from fleet_mpi.checkpoint.formats.base import Lod, Value
from fleet_mpi.checkpoint.formats.tensor_stream import read_tensor, write_tensor
from fleet_mpi.errors import CheckpointDamaged

_NOTE = "blocks of "
_MODEL = "__model__"


class TensorFiles:
    """The files of a folder."""

    def __init__(self, filename: str | None = None) -> None:
        pass

    @staticmethod
    def takes(filename: str | None) -> bool:
        """No name of a file means this format."""
        return filename is None

    def write(self, save: Save, values: Iterable[Value]) -> None:
        """Write a file per value."""
        for name, array, lod in values:
            with save.open(name) as stream:
                write_tensor(stream, array, lod)

    def write_block(self, save: Save, name: str, block: int, rows: Iterable[tuple[int, int]], array: Array) -> None:
        """Write a block of a variable; ``rows`` are (first row, number of rows) of all its blocks, in order."""
        self.write(save, [Value(_block_name(name, block), array)])
        save.note(_NOTE + name, until=name, rows=[list(one) for one in rows])

    def read(self, files: SavedFiles, names: Collection[str], saved: Collection[str] = ()) -> Iterator[Value]:
        """Yield the values of these variables, whose files are all there."""
        found = {name: self.files([name], files) for name in names}
        missing = [name for name, held in found.items() if not all(map(files.has, held))]
        if missing:
            raise CheckpointDamaged(f"{files.folder}: no file for {len(missing)} of {len(names)} variables: "
                                    + ", ".join(missing[:20]))
        with files.refusing_changed([one for held in found.values() for one in held]):
            for name, held in found.items():
                yield Value(name, *_joined(files, name, [_read(files, one) for one in held]))

    def files(self, names: Iterable[str], folder: SavedFiles | None = None) -> list[str]:
        """The files of these variables: their own, or those of their blocks in a folder."""
        return [file for name in names for file in _files_of(folder, name)]

    def names(self, folder: SavedFiles) -> list[str]:
        """The files of a folder, apart from a model and what is hidden; blocks are the variable that they make up."""
        found = set(folder.manifest.files) or {one for one in os.listdir(folder.folder)
                                               if os.path.isfile(os.path.join(folder.folder, one))}
        in_blocks = {key[len(_NOTE):] for key in folder.manifest.notes if key.startswith(_NOTE)}
        found = found - set(self.files(in_blocks, folder)) | in_blocks
        return sorted(one for one in found if one != manifest.NAME and not one.startswith((".", _MODEL)))


def _block_name(name: str, block: int) -> str:
    return f"{name}.block{block}"


def _files_of(folder: SavedFiles | None, name: str) -> list[str]:
    noted = None if folder is None else folder.manifest.notes.get(_NOTE + name)
    return [name] if noted is None else [_block_name(name, block) for block in range(len(noted["rows"]))]


def _read(files: SavedFiles, name: str) -> tuple[np.ndarray, Lod]:
    """(array, lod) of a file that has one tensor."""
    with files.open(name) as stream:
        found = read_tensor(stream)
        if stream.read(1):
            raise CheckpointDamaged(f"{stream.name}: there is more in the file after the tensor")
        stream.require_whole()
    return found


def _joined(files: SavedFiles, name: str, parts: list[tuple[np.ndarray, Lod]]) -> tuple[np.ndarray, Lod]:
    """The whole of (array, lod) pairs, one for each file of a variable."""
    noted = files.manifest.notes.get(_NOTE + name)
    if noted is None:
        return parts[0]
    arrays = [array for array, _ in parts]
    got = [len(array) for array in arrays]
    if got != [rows for _, rows in noted["rows"]]:
        raise CheckpointDamaged(f"{files.folder}: the blocks of {name} have {got} rows, expected "
                                f"{[rows for _, rows in noted['rows']]}: not all servers that cut it so have saved")
    return np.concatenate(arrays), ()
