"""Files and folders that are being written: named ``.NAME.<16 hex digits>.part``, locked while their writer lives.

The lock (flock) ends with the writer however that ends, so that others can tell a rest from a part in work.
"""

import fcntl
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from fleet_mpi.errors import Stalled
from fleet_mpi.ranks import waiting

_PART = re.compile(r"\.(.+)\.[0-9a-f]{16}\.part", re.S)
LOCK = ".fleet_mpi.lock"  # in a folder that cannot be locked itself
LONGEST_NAME = 60  # characters of NAME: a file name has 255 bytes at most
# Where the file system has no locks, what nobody has touched for so long is a rest.
_SURELY_DEAD_S = 86400


class Part:
    """A part in work, an empty file or folder; ``release`` it when it has its final name or is gone."""

    def __init__(self, folder: str, name: str, is_folder: bool = False) -> None:
        self._handle: int | None
        while True:
            self.token = secrets.token_hex(8)
            self.path = os.path.join(folder, f".{name[:LONGEST_NAME]}.{self.token}.part")
            self._handle = handle = _made(self.path, is_folder)
            if _is_mine(handle) and os.path.exists(self.path):  # else a sweep was quicker than the lock
                return
            self.release()

    def release(self) -> None:
        """Give up the lock. May be called again."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _made(path: str, is_folder: bool) -> int:
    if is_folder:
        os.mkdir(path)
        return os.open(path, os.O_RDONLY)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)


def found(folder: str, pattern: str) -> list[str]:
    """Names of the parts in a folder whose NAME matches a regular expression, in work or not."""
    matches = [(_PART.fullmatch(name), name) for name in os.listdir(folder)]
    return [name for match, name in matches if match and re.fullmatch(pattern, match[1], re.S)]


def sweep(folder: str, pattern: str = ".+", and_folders: bool = True) -> None:
    """Remove the rests of writers that have ended, as far as this user may."""
    for name in found(folder, pattern):
        path = os.path.join(folder, name)
        if (and_folders or os.path.isfile(path)) and _is_dead(path):
            with suppress(OSError):
                remove(path)


def remove(path: str) -> None:
    """Remove a part, if it is there."""
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.exists(path):
        os.unlink(path)


def _is_dead(path: str) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:  # another sweep was quicker, or it is another user's
        return False
    try:
        return _lock(handle) or time.time() - os.fstat(handle).st_mtime > _SURELY_DEAD_S
    except BlockingIOError:
        return False
    finally:
        os.close(handle)


def _is_mine(handle: int) -> bool:
    """Lock a part that was just made; whether no sweep has it locked."""
    try:
        _lock(handle)
    except BlockingIOError:
        return False
    return True


def _lock(handle: int) -> bool:
    """Lock an open file or folder, or raise BlockingIOError; returns False where the file system has no such locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        raise
    except OSError:
        return False


@contextmanager
def alone_in(folder: str) -> Iterator[None]:
    """Keep other savers out of a folder during the block; wait for one that is in, as long as the deadline allows."""
    handles = [os.open(folder, os.O_RDONLY)]
    try:
        if not _wait_for(handles[0], folder):
            # NFS locks nothing that is not open for writing, and so no folders.
            with suppress(OSError):
                handles.append(os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT, 0o666))
            _wait_for(handles[-1], folder)
        yield
    finally:
        for handle in handles:
            # Not only closed: a process that was forked meanwhile has the handle too.
            _unlock(handle)
            os.close(handle)


def _wait_for(handle: int, folder: str) -> bool:
    """Lock, once the others have unlocked; returns whether there are such locks."""
    locks: list[bool] = []

    def is_locked() -> bool:
        with suppress(BlockingIOError):
            locks.append(_lock(handle))
        return bool(locks)
    limit_s = waiting.deadline_s()
    if not waiting.poll(is_locked, limit_s=limit_s):
        raise Stalled(f"save into {folder!r}: another process has been saving there for {limit_s:g} s and has not "
                      f"finished: end it if it hangs, or save into another folder")
    return locks[0]


def _unlock(handle: int) -> None:
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)
