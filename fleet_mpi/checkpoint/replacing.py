"""Writing a file beside its target and renaming it: a reader sees the old file or the new, never half.

Knows no format.
"""

import os
import secrets
from contextlib import contextmanager


@contextmanager
def replacing(path):
    """Open a binary file that takes the place of ``path`` when the block ends without an error.

    Folders on the way are made. If the block raises, ``path`` stays as it was and nothing is left behind.
    """
    with replacing_together() as beside, beside(path) as stream:
        yield stream


@contextmanager
def replacing_together():
    """``replacing`` for many files: gives a function that opens one for a path; all take their places at the end.

    The files must be closed by then. If the block raises, no path changes.
    """
    written = {}  # the file beside a path -> the path

    def beside(path):
        path = os.path.realpath(path)  # a link stays a link, what it points to is replaced
        folder, name = os.path.split(path)
        os.makedirs(folder, exist_ok=True)
        # Random: several ranks, on several machines, may write into one folder. "x" never opens another's.
        new = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(8)}.part")
        stream = open(new, "xb")
        written[new] = path
        return stream
    try:
        yield beside
        # Without it a crash of the machine may leave the new names with no content.
        for new in written:
            _sync(new)
        for new, path in written.items():
            _keep_mode(path, new)
            os.replace(new, path)
    except BaseException:
        for new in written:
            _remove(new)
        raise
    for folder in sorted({os.path.dirname(path) for path in written.values()}):
        _sync_folder(folder)


def _sync(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _keep_mode(path, beside):
    if os.path.exists(path):
        os.chmod(beside, os.stat(path).st_mode & 0o7777)


def _remove(beside):
    if os.path.exists(beside):
        os.unlink(beside)


def _sync_folder(folder):
    """Make the rename itself last; some network file systems refuse, which harms nothing."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
