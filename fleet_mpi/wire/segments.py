"""Memory that the ranks of one node share.

A segment has no name that could stay behind: rank 0 opens it, the others reach it through rank 0's process. The order
in which one rank's writes are seen by another is that of x86; elsewhere there is none.
"""

from __future__ import annotations

import mmap
import os
import platform
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = 4096


def share(gather: Callable[[list[np.ndarray]], Sequence[Sequence[np.ndarray]]], index: int, nbytes: int,
          willing: bool = True) -> mmap.mmap | None:
    """Collective: a segment of ``nbytes``, whose first page is not the caller's; None, for all, where one of them
    cannot or will not share: they are on several machines or in several containers, memory is short, or the processor
    is of another kind. ``gather([array])`` gives every rank's list of arrays, by rank.
    """
    willing = willing and platform.machine() == "x86_64" and hasattr(os, "memfd_create")
    invitation, file, memory = np.zeros(2, np.int64), None, None
    try:
        if index == 0 and willing:
            file, memory = _make(nbytes)
        if file is not None and memory is not None:
            invitation[...] = file, secrets.randbits(62)
            memory[:8] = invitation[1].tobytes()
        number, secret, process = gather([np.append(invitation, os.getpid())])[0][0].tolist()
        if index and willing and secret:
            memory = _open(number, secret, process, nbytes)
        entered = gather([np.array([memory is not None])])
    finally:
        if file is not None:
            os.close(file)
    return memory if all(one[0][0] for one in entered) else None


def pages(nbytes: int) -> int:
    """So many bytes in whole pages."""
    return -(-nbytes // PAGE) * PAGE


def _make(nbytes: int) -> tuple[int | None, mmap.mmap | None]:
    """(file, memory) of a new segment, allocated in full: running out of memory later would kill the process."""
    file = None
    try:
        file = os.memfd_create("fleet_mpi")
        os.posix_fallocate(file, 0, nbytes)
        return file, mmap.mmap(file, nbytes)
    except OSError:
        return file, None


def _open(number: int, secret: int, process: int, nbytes: int) -> mmap.mmap | None:
    """Open the segment that is file ``number`` of another process; None if it is not visible, or not ours."""
    try:
        file = os.open(f"/proc/{process}/fd/{number}", os.O_RDWR)
    except OSError:
        return None
    try:
        if os.fstat(file).st_size != nbytes:
            return None
        memory = mmap.mmap(file, nbytes)
        return memory if memory[:8] == np.int64(secret).tobytes() else None
    except (OSError, ValueError):
        return None
    finally:
        os.close(file)
