"""The manifest of a folder of saved files: which save wrote each file last, and what it wrote.

One hidden file beside the saved ones: a line with format, version and checksum, then JSON. It is replaced by one
rename, and that rename is what makes a save count. Folders without one (the original's) have nothing to be compared
with.
"""

import json
import os
import zlib
from typing import Any, NamedTuple, TypeAlias

from fleet_mpi.checkpoint.folders import storage
from fleet_mpi.errors import CheckpointDamaged

NAME = ".fleet_mpi.saves"
_HEAD = "fleet_mpi saves 1"


Note: TypeAlias = dict[str, Any]  # {word: what JSON can say}


class Entry(NamedTuple):
    """What a save wrote into a file."""

    save: str
    size: int
    checksum: int


class Manifest:
    """{name of a file: Entry}, and what the saves noted beside it: {key: {word: value}}."""

    def __init__(self, files: dict[str, Entry] | None = None, notes: dict[str, Note] | None = None) -> None:
        self.files, self.notes = files or {}, notes or {}

    def to_bytes(self) -> bytes:
        """The content of the file."""
        body = json.dumps({"files": self.files, "notes": self.notes}, separators=(",", ":"), sort_keys=True).encode()
        return f"{_HEAD} {zlib.crc32(body):08x}\n".encode() + body


def path_in(folder: str) -> str:
    """Where the manifest of a folder is."""
    return os.path.join(folder, NAME)


def content(folder: str) -> bytes:
    """The bytes of a folder's manifest, none where there is none."""
    path = path_in(folder)
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise storage.refused("read", path, error) from None


def parse(data: bytes, folder: str) -> Manifest:
    """The Manifest that bytes hold; CheckpointDamaged where they are not whole."""
    if not data:
        return Manifest()
    head, _, body = data.partition(b"\n")
    try:
        if head.decode() != f"{_HEAD} {zlib.crc32(body):08x}":
            raise ValueError(f"its first line is {head[:60]!r}")
        document = json.loads(body)
        return Manifest({name: Entry(*entry) for name, entry in document["files"].items()}, document["notes"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointDamaged(f"{path_in(folder)}: the list of what was saved is damaged or of another version: "
                                f"{error}; take an older copy of the folder, or remove this file to load the others "
                                f"unchecked"
                                ) from None
