"""From names of variables and files to paths within a folder; a name never leads out of it.

A slash makes a folder, as in the original.
"""

import os

from fleet_mpi.checkpoint.folders import manifest, parts
from fleet_mpi.errors import UsageError


def path_in(folder: str, name: str, error: type[Exception] = UsageError) -> str:
    """The path of a name in a folder; an ``error`` where it would lie elsewhere, or where a save keeps its own."""
    words = os.fspath(name).split("/")
    if "\0" in name or any(word in ("", ".", "..") for word in words):
        raise error(f"{name!r} cannot be the name of a file in {str(folder)!r}: expected words with single slashes "
                    f"between them, no '..', none at the start; give the variable another name")
    if words[0] in (manifest.NAME, parts.LOCK) or words[0].startswith(".") and words[0].endswith(".part"):
        raise error(f"{name!r} cannot be the name of a file in {str(folder)!r}: saves keep their own files under such "
                    f"names; give the variable another name")
    return os.path.join(folder, *words)
