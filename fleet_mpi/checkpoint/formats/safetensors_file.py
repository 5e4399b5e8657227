"""One file in the safetensors format for all variables, by name; other libraries read it without this package.

The format has no LoD: where a variable has one, its offsets are in the file's metadata. The package ``safetensors``
(the extra ``export``) is imported when a file is written or read.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from fleet_mpi.arrays import to_host
from fleet_mpi.checkpoint.folders import file_names
from fleet_mpi.checkpoint.formats.base import Value
from fleet_mpi.errors import CheckpointDamaged, EnvironmentProblem, installing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from fleet_mpi.checkpoint.folders.saved_files import SavedFiles
    from fleet_mpi.checkpoint.folders.transaction import Save

ENDING = ".safetensors"
_LOD = "lod of "   # a variable's name follows; a key of the metadata
_LENGTH_BYTES = 8  # of the header, which the file begins with


class SafetensorsFile:
    """The file of this name in a folder."""

    def __init__(self, filename: str | None) -> None:
        assert filename is not None   # as ``takes`` says
        self.filename = filename

    @staticmethod
    def takes(filename: str | None) -> bool:
        """Names that end in ``.safetensors`` mean this format."""
        return filename is not None and filename.endswith(ENDING)

    def write(self, save: Save, values: Iterable[Value]) -> None:
        """Write all values into the file, which is made in memory: its header, with all shapes, comes first."""
        content = to_bytes(values)
        with save.open(self.filename) as stream:
            stream.write(content)

    def read(self, files: SavedFiles, names: Collection[str], saved: Collection[str]) -> Iterator[Value]:
        """Yield the values of these variables."""
        found = {value.name: value for value in self._values(files)}
        missing = sorted(set(names) - set(found))
        if missing:
            raise CheckpointDamaged(f"{self._path(files)}: no value for {len(missing)} of {len(names)} variables: "
                                    + ", ".join(missing[:20]))
        for name in sorted(names):
            yield found[name]

    def files(self, names: Iterable[str], folder: SavedFiles | None = None) -> list[str]:
        """The one file, whatever the variables."""
        return [self.filename]

    def names(self, folder: SavedFiles) -> list[str]:
        """As the file says."""
        return sorted(value.name for value in self._values(folder))

    def _values(self, files: SavedFiles) -> list[Value]:
        file_names.path_in(files.folder, self.filename)  # this name is the script's own
        return from_bytes(files.read(self.filename), self._path(files))

    def _path(self, files: SavedFiles) -> str:
        return os.path.join(files.folder, self.filename)


def to_bytes(values: Iterable[Value]) -> bytes:
    """The content of a file with these values."""
    arrays, metadata = {}, {"format": "np"}
    for name, array, lod in values:
        # ascontiguousarray alone makes one dimension of none.
        arrays[name] = np.ascontiguousarray(to_host(array)).reshape(array.shape)
        if lod:
            metadata[_LOD + name] = json.dumps(lod)
    made: bytes = _library().save(arrays, metadata)
    return made


def from_bytes(content: bytes, where: str) -> list[Value]:
    """The values of a file; CheckpointDamaged where it is none."""
    library = _library()
    try:
        arrays, lods = library.load(content), _lods(content)
    # Whatever a damaged file leads the library to.
    except Exception as error:
        raise CheckpointDamaged(f"{where}: damaged, or no safetensors file: {error}; take an older copy") from None
    return [Value(name, array, lods.get(name, ())) for name, array in arrays.items()]


def _lods(content: bytes) -> dict[str, tuple[tuple[int, ...], ...]]:
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    metadata = json.loads(content[_LENGTH_BYTES:_LENGTH_BYTES + length]).get("__metadata__", {})
    return {key[len(_LOD):]: tuple(tuple(level) for level in json.loads(text))
            for key, text in metadata.items() if key.startswith(_LOD)}


def _library() -> Any:
    try:
        from safetensors import numpy as library
    except ImportError:
        raise EnvironmentProblem("safetensors files need the package safetensors, which is not installed: "
                                 f"{installing('export')}, or pip install safetensors") from None
    return library
