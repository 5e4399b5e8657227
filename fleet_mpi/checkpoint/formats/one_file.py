"""One file for all variables: tensors one behind the other, in name order, without their names (the original's)."""

import os
from collections.abc import Collection, Iterable, Iterator

from fleet_mpi.checkpoint.folders import file_names
from fleet_mpi.checkpoint.folders.saved_files import SavedFiles
from fleet_mpi.checkpoint.folders.transaction import Save
from fleet_mpi.checkpoint.formats.base import Value
from fleet_mpi.checkpoint.formats.tensor_stream import read_tensors, write_tensor
from fleet_mpi.errors import CheckpointDamaged


class OneFile:
    """The file of this name in a folder."""

    def __init__(self, filename: str | None) -> None:
        assert filename is not None   # as ``takes`` says
        self.filename = filename

    @staticmethod
    def takes(filename: str | None) -> bool:
        """Any name of a file means this format."""
        return filename is not None

    def write(self, save: Save, values: Iterable[Value]) -> None:
        """Write all values into the file."""
        with save.open(self.filename) as stream:
            for _, array, lod in values:
                write_tensor(stream, array, lod)

    def read(self, files: SavedFiles, names: Collection[str], saved: Collection[str]) -> Iterator[Value]:
        """Read the file to its end, and yield the values of these variables."""
        file_names.path_in(files.folder, self.filename)  # this name is the script's own
        wanted, held, count = set(names), sorted(saved), 0
        with files.refusing_changed([self.filename]), files.open(self.filename) as stream:
            for count, (array, lod) in enumerate(read_tensors(stream), 1):
                if count <= len(held) and held[count - 1] in wanted:
                    yield Value(held[count - 1], array, lod)
            stream.require_whole()
        if count != len(held):
            raise CheckpointDamaged(f"{os.path.join(files.folder, self.filename)}: holds {count} variables, the "
                                    f"program asks for {len(held)}")

    def files(self, names: Iterable[str], folder: SavedFiles | None = None) -> list[str]:
        """The one file, whatever the variables."""
        return [self.filename]

    def names(self, folder: SavedFiles) -> None:
        """The file does not say."""
