"""What a job that was killed leaves on this machine: segments of MPI in /dev/shm. Needs the standard library only.

MPICH names a segment by a hash of its job that nobody else is told, so no name says whose it is. A process that has it
mapped does: while ranks live, their segments are noted in the job's folder, and when the job has ended those that are
still there are removed. Nothing else is touched. (Open MPI's mpirun removes its own, unless it is killed itself.)
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False  # typing is not imported: this runs before every rank
if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY = "/dev/shm"
_NOTE = "segment"
_SEGMENT = re.compile(rb" /dev/shm/(mpich_(?:shm|vci)_[0-9a-f]+_\d+|sm_segment\.\S+|vader_segment\.\S+)$", re.M)


def note(process: int, folder: str) -> set[str]:
    """Note the segments that this process and all below it have mapped; returns their names."""
    names = segments(process)
    for name in names:
        try:
            open(_noted(folder, name), "w").close()
        except OSError:
            pass  # the folder is not on this host
    return names


def sweep(folder: str, memory: str = MEMORY) -> list[str]:
    """Remove the segments that were noted on this host; returns the names of those that were still there."""
    return [name for name in _names(folder) if _removed(os.path.join(memory, name))]


def segments(process: int) -> set[str]:
    """The names of MPI's segments that this process and all below it have mapped."""
    found = set(_mapped(process))
    for child in _children(process):
        found |= segments(child)
    return found


def _mapped(process: int) -> list[str]:
    try:
        with open(f"/proc/{process}/maps", "rb") as file:
            return [name.decode() for name in _SEGMENT.findall(file.read())]
    except OSError:
        return []  # it has ended


def _children(process: int) -> Iterator[int]:
    try:
        tasks = os.listdir(f"/proc/{process}/task")
    except OSError:
        return
    for task in tasks:
        try:
            with open(f"/proc/{process}/task/{task}/children") as file:
                yield from map(int, file.read().split())
        except OSError:
            continue


def _noted(folder: str, name: str = "") -> str:
    return os.path.join(folder, f"{_NOTE}.{os.uname().nodename}.{name}")


def _names(folder: str) -> list[str]:
    begin = os.path.basename(_noted(folder))
    try:
        return [entry.removeprefix(begin) for entry in os.listdir(folder) if entry.startswith(begin)]
    except OSError:
        return []


def _removed(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True
