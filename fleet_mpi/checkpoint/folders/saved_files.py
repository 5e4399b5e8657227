"""Reading a folder that saves were written into: every file as the last save that counts left it, or a refusal.

A save may be on its way meanwhile (``transaction``): files that are not yet in their places are read from where they
are, and a reader that was overtaken begins again. Nothing in the folder is changed, so that it may be read-only. Knows
no format.
"""

import io
import os
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from fleet_mpi.checkpoint.folders import file_names, manifest, storage
from fleet_mpi.checkpoint.folders.transaction import part_folder
from fleet_mpi.errors import CheckpointDamaged, CheckpointMissing

if TYPE_CHECKING:
    from fleet_mpi.wire.protocol import ByteBuffer

T = TypeVar("T")

_MOST_TRIES = 20
_PIECE_BYTES = 1 << 22


def read_settled(folder: str, read: Callable[["SavedFiles"], Iterable[T]]) -> Iterator[T]:
    """Yield what ``read(SavedFiles)`` yields. All of it comes from one state of the folder.

    Where a save comes in between it begins again: of values that come twice, the last ones count.
    """
    for last in [False] * (_MOST_TRIES - 1) + [True]:
        files = SavedFiles(folder)
        try:
            yield from read(files)
        except (CheckpointDamaged, CheckpointMissing):
            if last or not files.is_outdated():
                raise
        else:
            if not files.is_outdated():
                return
    raise CheckpointDamaged(f"{folder}: it was saved to {_MOST_TRIES} times while it was read: load it when no "
                            f"training saves into it, or from a copy")


class SavedFiles:
    """The files of a folder, as its manifest describes them at this moment."""

    def __init__(self, folder: str) -> None:
        if not os.path.isdir(folder):
            kind = "a file, not a folder" if os.path.exists(folder) else "no such folder"
            raise CheckpointMissing(f"{str(folder)!r}: {kind}; nothing was saved there")
        self.folder = os.path.realpath(folder)
        self._content = manifest.content(self.folder)
        self.manifest = manifest.parse(self._content, folder)
        saves = {entry.save for entry in self.manifest.files.values()}
        self._unplaced = {save for save in saves if os.path.isdir(part_folder(self.folder, save))}

    def is_outdated(self) -> bool:
        """Whether there was another save since."""
        return manifest.content(self.folder) != self._content

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return any(os.path.isfile(path) for path in self._paths(name))

    def open(self, name: str) -> "SavedFile":
        """A stream of a file; let it ``require_whole`` at its end."""
        entry = self.manifest.files.get(name)
        for path in self._paths(name):
            try:
                return SavedFile(path, entry)
            except FileNotFoundError:
                pass
            except OSError as error:
                raise storage.refused("read", path, error) from None
        raise CheckpointMissing(f"{os.path.join(self.folder, name)}: no such file")

    def read(self, name: str) -> bytes:
        """All bytes of a file."""
        with self.open(name) as stream:
            content = stream.read()
            with self.refusing_changed([name]):
                stream.require_whole()
        return content

    @contextmanager
    def refusing_changed(self, names: Collection[str]) -> Iterator[None]:
        """Let a CheckpointDamaged of the block name all of these files that are not what was saved, if it comes from
        that."""
        try:
            yield
        except CheckpointDamaged:
            self._refuse_changed(names)
            raise

    def _refuse_changed(self, names: Collection[str]) -> None:
        changed = [name for name in names if not self._is_whole(name)]
        if changed:
            raise CheckpointDamaged(
                f"{self.folder}: {len(changed)} of {len(names)} files are not what was saved: "
                f"{', '.join(changed[:20])}. They were damaged, or written by something else since: take an older "
                f"copy; if the change is meant, remove {manifest.path_in(self.folder)} to load the files as they are")

    def _is_whole(self, name: str) -> bool:
        if not self.has(name):
            return False
        with self.open(name) as stream:
            while stream.read(_PIECE_BYTES):
                pass
            return stream.is_whole()

    def _paths(self, name: str) -> Iterator[str]:
        """Where a file may be, first the place that it is moved from."""
        entry = self.manifest.files.get(name)
        if entry is not None and entry.save in self._unplaced:
            yield file_names.path_in(part_folder(self.folder, entry.save), name, CheckpointDamaged)
        yield file_names.path_in(self.folder, name, CheckpointDamaged)


class SavedFile(io.FileIO):
    """A file, read from its start to its end and compared with what was saved (Entry, or None where that is
    unknown)."""

    def __init__(self, path: str, entry: manifest.Entry | None) -> None:
        super().__init__(path)
        self._entry, self._checksum = entry, 0

    def readinto(self, target: "ByteBuffer") -> int:
        """Fill a buffer as far as possible; returns how many bytes came."""
        count = super().readinto(target)
        self._checksum = zlib.crc32(memoryview(target)[:count], self._checksum)
        return count

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes, all of them if no size is given."""
        data = super().read(size)
        self._checksum = zlib.crc32(data, self._checksum)
        return data

    def require_whole(self) -> None:
        """Raise CheckpointDamaged unless what was read, to the end, is what was saved."""
        if not self.is_whole():
            raise CheckpointDamaged(f"{self.name}: this is not the file that was saved")

    def is_whole(self) -> bool:
        """Whether what was read, to the end, is what was saved."""
        return self._entry is None or (self._entry.size, self._entry.checksum) == (
            os.fstat(self.fileno()).st_size, self._checksum)
