"""All-reduce by the MPI library: as fast as it can, in whatever order it likes.

The library is several times faster in pieces of a megabyte than in one call for all (benchmarks.allreduce). Its
blocking call is its best one, but cannot be given up: it is made only when a barrier, which can, has told that all
ranks have come.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from mpi4py import MPI

if TYPE_CHECKING:
    import numpy as np

    from fleet_mpi.collective.reducer import Reduction

PIECE = 1 << 20


class LibraryAllReduce:
    """Collective: sums arrays over a communicator; all ranks must start the same arrays in the same order.

    Barriers are begun when a rank starts an array, sums made when all have: in orders that differ from rank to rank. So
    barriers have a communicator of their own, and no sum overtakes one that was started before it: not on another
    communicator either, where two ranks would else stay in the sums of two, each waiting for the other. So those that
    are used by turns share one queue, ``waiting``.
    """

    def __init__(self, comm: MPI.Intracomm, waiting: deque[_Reduction] | None = None) -> None:
        self.comm, self.meetings = comm, comm.Dup()
        self.waiting: deque[_Reduction] = deque() if waiting is None else waiting

    def start(self, array: np.ndarray) -> Reduction:
        """Begin to replace a contiguous array, on every rank, by the sum; returns a Reduction to ``advance``."""
        made = _Reduction(self, array)
        self.waiting.append(made)
        return made

    def add_up(self) -> bool:
        """Sum all arrays that everybody has started; returns whether there was one."""
        happened = False
        while self.waiting and self.waiting[0].meeting.Test():
            first = self.waiting.popleft()
            for piece in first.pieces:
                first.comm.Allreduce(MPI.IN_PLACE, piece)
            first.done = happened = True
        return happened


class _Reduction:
    """One array: the barrier, then its pieces."""

    def __init__(self, owner: LibraryAllReduce, array: np.ndarray) -> None:
        self.owner, self.comm, self.meeting = owner, owner.comm, owner.meetings.Ibarrier()
        length = max(1, PIECE // array.itemsize)
        self.pieces = [array[start:start + length] for start in range(0, len(array), length)]
        self.done = False

    def advance(self) -> bool:
        """Add up what all have come for; returns whether anything was done."""
        return not self.done and self.owner.add_up()

    def is_over(self) -> bool:
        """Whether the array is the sum."""
        return self.done

    def waits_for(self) -> list[int]:
        """The library does not say whom: all others."""
        return [rank for rank in range(self.comm.size) if rank != self.comm.rank]
