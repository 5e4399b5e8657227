"""What a file system refuses, as sentences with the path and a remedy; and what makes files outlast a power cut.

Knows paths only.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeAlias

from fleet_mpi.errors import FleetError, StorageProblem

_FULL = "the disk is full: remove something, or save elsewhere"
_DENIED = "permission denied to this user: change the permissions, or choose another folder"
_REASONS = {
    errno.ENOSPC: _FULL, errno.EDQUOT: "the quota of this user is used up: remove something, or save elsewhere",
    errno.EACCES: _DENIED, errno.EPERM: _DENIED, errno.EROFS: "the file system is read-only: choose another folder",
    errno.ENAMETOOLONG: "the name is longer than the file system allows: give the variable a shorter name, or save all "
                        "variables in one file (filename=...)",
    errno.ENOTDIR: "there is a file where a folder should be", errno.EEXIST: "there is a file where a folder should be",
    errno.EISDIR: "there is a folder where the file should be",
    errno.ENOTEMPTY: "there is a folder where the file should be"}

# File systems merge what several threads flush at once: 1000 small files take a third of the time.
_SYNC_THREADS = 8

AnyPath: TypeAlias = str | os.PathLike[str]


@contextmanager
def refusals(what: str, path: AnyPath) -> Iterator[None]:
    """Turn an OSError of the block into a StorageProblem that says what could not be done, where and why."""
    try:
        yield
    except FleetError:
        raise
    except OSError as error:
        raise refused(what, path, error) from None


def refused(what: str, path: AnyPath, error: OSError) -> StorageProblem:
    """The StorageProblem (not raised) that an OSError means."""
    return StorageProblem(f"{what} {str(path)!r}: {_reason(error, path)}")


def _reason(error: OSError, path: AnyPath) -> str:
    reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
    is_other = error.filename is not None and os.fspath(error.filename) != os.fspath(path)
    return f"{reason} ({error.filename})" if is_other else reason


def sync_files(paths: Iterable[str]) -> None:
    """Let the content of files reach the disk."""
    paths = list(paths)
    if len(paths) < _SYNC_THREADS:
        for path in paths:
            _sync(path)
        return
    with ThreadPoolExecutor(_SYNC_THREADS) as pool:
        for _ in pool.map(_sync, paths):
            pass


def sync_folders(folders: Iterable[str]) -> None:
    """Let the names in folders reach the disk; some network file systems refuse, which harms nothing."""
    for folder in sorted(set(folders)):
        try:
            _sync(folder)
        except OSError:
            pass


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def keep_mode(old: str, new: str) -> None:
    """Give a new file the permissions of the one that it replaces, if there is one."""
    if os.path.exists(old):
        os.chmod(new, os.stat(old).st_mode & 0o7777)
