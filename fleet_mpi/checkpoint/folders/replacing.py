"""Writing one file beside its target and renaming it: a reader sees the old file or the new, never half.

For files that stand for themselves; those that belong together go through ``transaction``. Knows no format.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from fleet_mpi.checkpoint.folders import parts, storage


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Open a binary file that takes the place of ``path`` when the block ends without an error.

    Folders on the way are made. If the block raises, ``path`` stays as it was and nothing is left behind; what a killed
    process has left beside it goes.
    """
    with storage.refusals("write", path):
        path = os.path.realpath(path)  # a link stays a link, what it points to is replaced
        folder, name = os.path.split(path)
        os.makedirs(folder, exist_ok=True)
        # Random: several ranks, on several machines, may write into one folder.
        part = parts.Part(folder, name)
        try:
            with open(part.path, "wb") as stream:
                yield stream
            # Without it a crash of the machine may leave the new name with no content.
            storage.sync_files([part.path])
            storage.keep_mode(path, part.path)
            os.replace(part.path, path)
        finally:
            parts.remove(part.path)
            part.release()
        storage.sync_folders([folder])
        parts.sweep(folder, re.escape(name[:parts.LONGEST_NAME]), and_folders=False)
