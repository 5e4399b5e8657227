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
    path = os.path.realpath(path)  # a link stays a link, what it points to is replaced
    folder, name = os.path.split(path)
    os.makedirs(folder, exist_ok=True)
    # Random: several ranks, on several machines, may write into one folder. "x" never opens another's.
    beside = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(8)}.part")
    try:
        with open(beside, "xb") as stream:
            yield stream
            stream.flush()
            # Without it a crash of the machine may leave the new name with no content.
            os.fsync(stream.fileno())
        _keep_mode(path, beside)
        os.replace(beside, path)
    except BaseException:
        _remove(beside)
        raise
    _sync_folder(folder)


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
