"""Saving several files into a folder as one: whoever loads gets all of them, or all as they were before.

A save goes through three stages, and may be killed in any of them:

1. All files are written into a part folder (``.save.<id>.part``), and reach the disk. Killed here, the save never was;
   the next save into the folder removes the rest.
2. The folder's manifest is replaced by one that says what this save wrote. From this rename on the save counts.
3. The files are renamed into their places. Killed here, loading takes what is left in the part folder from there
   (``saved_files``), and the next save into the folder finishes the renames.

Savers take turns for the last two stages. Where the file system has no locks, one at a time may save into a folder.
Workers of one job that save the same state into one folder leave one save there, that of the lowest worker, whichever
comes first (``Author``). Knows no format.
"""

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from fleet_mpi import notices
from fleet_mpi.arrays import Array, to_host
from fleet_mpi.checkpoint.folders import file_names, manifest, parts, storage
from fleet_mpi.checkpoint.folders.manifest import Entry, Manifest, Note
from fleet_mpi.errors import CheckpointDamaged, StorageProblem, UsageError

_PART = "save"
_AUTHOR = "author of "  # a save's id follows


class Author(NamedTuple):
    """Who saves: a worker, the start of the job that it belongs to, and how many steps it has made."""

    job: str
    step: int
    worker: int


@contextmanager
def saving_into(folder: str, author: Author | None = None) -> "Iterator[Save]":
    """Give a Save whose files take their places together when the block ends; if it raises, nothing has changed.

    With an ``author``, nothing changes either where a lower worker of its job has saved the same state there.
    """
    with storage.refusals("save into", folder):
        os.makedirs(folder, exist_ok=True)
        save = Save(os.path.realpath(folder), author)
        try:
            yield save
            save.commit()
        finally:
            save.close()


def part_folder(folder: str, save: str) -> str:
    """Where the files of a save are until they are in their places."""
    return os.path.join(folder, f".{_PART}.{save}.part")


class Save:
    """The files of one save, on their way into a folder."""

    def __init__(self, folder: str, author: Author | None = None) -> None:
        self.folder = folder
        self.files: dict[str, Entry] = {}
        self.notes: dict[str, Note] = {}
        self._author, self._state = author, 0
        with parts.alone_in(folder):  # a sweep by another saver must not see it before it is locked
            self._part = parts.Part(folder, _PART, is_folder=True)
        self.id = self._part.token
        self._may_count = False

    def open(self, name: str) -> "_Stream":
        """A binary stream to write a file to; close it before the save ends."""
        file_names.path_in(self.folder, name)  # a refusal names the folder that was asked for
        path = os.path.join(self._part.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if name in self.files:
            raise UsageError(f"save into {self.folder!r}: two files of one save have the name {name!r}")
        return _Stream(path, self, name)

    def note(self, key: str, **words: Any) -> None:
        """Let the manifest say something from this save on, in the place of what it said under the same key.

        With the word ``until``, the name of a file: until another save writes that file.
        """
        self.notes[key] = words

    def has(self, array: Array) -> None:
        """Note a value that all workers have in common: saves with equal ones are of the same state."""
        if self._author is not None:
            line = np.ascontiguousarray(to_host(array)).reshape(-1).view(np.uint8)
            self._state = zlib.crc32(line.data, self._state)

    def commit(self) -> None:
        """Let the files take their places. From the rename of the manifest on the save counts."""
        self._reach_the_disk()
        with parts.alone_in(self.folder):
            known = _known(self.folder)
            finish(self.folder, known)
            if not self._is_there(known):
                self._prepare_places()
                self._may_count = True
                _replace_manifest(self.folder, self._merged(known))
                self._finish()

    def _is_there(self, known: Manifest) -> bool:
        """Whether a worker with a lower number has saved the same files of the same state."""
        if self._author is None or not known.notes.keys() >= self.notes.keys():
            return False
        mine = self._author_note(self._author)
        authors = [known.notes.get(_AUTHOR + known.files[name].save) if name in known.files else None
                   for name in self.files]
        return all(one is not None and {**one, "worker": mine["worker"]} == mine and one["worker"] < mine["worker"]
                   for one in authors)

    def _merged(self, known: Manifest) -> Manifest:
        """The manifest with this save; authors of saves that no file is left of are forgotten."""
        files = {**known.files, **self.files}
        notes = {key: words for key, words in known.notes.items() if words.get("until") not in self.files} | self.notes
        if self._author is not None:
            notes[_AUTHOR + self.id] = self._author_note(self._author)
        left = {_AUTHOR + entry.save for entry in files.values()}
        return Manifest(files,
                        {key: words for key, words in notes.items() if not key.startswith(_AUTHOR) or key in left})

    def _author_note(self, author: Author) -> Note:
        return {**author._asdict(), "state": self._state}

    def _finish(self) -> None:
        try:
            finish(self.folder, Manifest(self.files))
            parts.sweep(self.folder, _PART)
            parts.sweep(self.folder, and_folders=False)
        except OSError as error:
            problem = storage.refused("save into", self.folder, error)
            raise StorageProblem(f"{problem}. The save is complete and can be loaded here; the next one will put its "
                                 f"files in their places") from None

    def close(self) -> None:
        """Remove what does not count, give up the lock."""
        # Looked up: a signal handler may have raised right after the rename.
        if not self._may_count or self.id not in {entry.save for entry in _known(self.folder).files.values()}:
            parts.remove(self._part.path)
        self._part.release()

    def _reach_the_disk(self) -> None:
        # Without it a power cut may leave names with no content.
        storage.sync_files(os.path.join(self._part.path, name) for name in self.files)
        storage.sync_folders([self.folder, *(below for below, _, _ in os.walk(self._part.path))])

    def _prepare_places(self) -> None:
        """See to it that nothing but a crash can stop the renames."""
        for name in self.files:
            place = os.path.join(self.folder, name)
            above = os.path.dirname(place)
            os.makedirs(above, exist_ok=True)
            if os.path.commonpath([self.folder, os.path.realpath(above)]) != self.folder:
                raise UsageError(f"save into {self.folder!r}: {name!r} would lie outside, since {above!r} is a link; "
                                 f"remove the link, or give the variable another name")
            if os.path.isdir(place):
                raise IsADirectoryError(f"there is a folder where the file {place!r} should be")
            storage.keep_mode(place, os.path.join(self._part.path, name))


class _Stream:
    """Writes a file and keeps account of what was written."""

    def __init__(self, path: str, save: Save, name: str) -> None:
        self._file, self._save, self._name = open(path, "xb"), save, name
        self._size = self._checksum = 0

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes."""
        self._file.write(data)
        self._size += memoryview(data).nbytes
        self._checksum = zlib.crc32(data, self._checksum)

    def __enter__(self) -> "_Stream":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self._file.close()
        self._save.files[self._name] = Entry(self._save.id, self._size, self._checksum)


def finish(folder: str, known: Manifest) -> None:
    """Move files of saves that count, and were stopped before they had moved them, into their places."""
    touched, emptied = {folder}, []
    waiting = set(parts.found(folder, _PART))
    for save in {entry.save for entry in known.files.values()}:
        staged = part_folder(folder, save)
        if os.path.basename(staged) in waiting:
            touched |= _move(folder, staged, [name for name, entry in known.files.items() if entry.save == save])
            emptied.append(staged)
    # The new names first: what is removed cannot be found again after a power cut.
    storage.sync_folders(touched if emptied else ())
    for staged in emptied:
        parts.remove(staged)


def _move(folder: str, staged: str, names: list[str]) -> set[str]:
    """Returns the folders that got files."""
    for name in names:
        try:
            os.replace(os.path.join(staged, name), os.path.join(folder, name))
        except FileNotFoundError:  # it was moved before
            pass
    return {os.path.dirname(os.path.join(folder, name)) for name in names}


def _known(folder: str) -> Manifest:
    """The manifest as it is; one that cannot be read must not keep a training from saving."""
    try:
        return manifest.parse(manifest.content(folder), folder)
    except CheckpointDamaged as error:
        notices.log().warning("%s; it is replaced by this save, and older files of the folder are unchecked", error)
        return Manifest()


def _replace_manifest(folder: str, made: Manifest) -> None:
    part = parts.Part(folder, manifest.NAME[1:])
    try:
        with open(part.path, "wb") as stream:
            stream.write(made.to_bytes())
        storage.sync_files([part.path])
        os.replace(part.path, manifest.path_in(folder))
    finally:
        parts.remove(part.path)
        part.release()
    storage.sync_folders([folder])

