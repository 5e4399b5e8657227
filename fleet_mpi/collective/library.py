"""All-reduce by the MPI library: as fast as it can, in whatever order it likes.

The library is several times faster in pieces of a megabyte than in one call for all (benchmarks.allreduce). Its
blocking call is its best one, but cannot be given up: it is made only when a barrier, which can, has told that all
ranks have come.
"""

from mpi4py import MPI

PIECE = 1 << 20


class LibraryAllReduce:
    """Sums arrays over a communicator; all ranks must start the same arrays in the same order."""

    def __init__(self, comm):
        self.comm = comm

    def start(self, array):
        """Begin to replace a contiguous array, on every rank, by the sum; returns a Reduction to ``advance``."""
        return _Reduction(self.comm, array)


class _Reduction:
    """One array: the barrier, then its pieces."""

    def __init__(self, comm, array):
        self.comm, self.meeting = comm, comm.Ibarrier()
        length = max(1, PIECE // array.itemsize)
        self.pieces = [array[start:start + length] for start in range(0, len(array), length)]
        self.done = False

    def advance(self):
        """Add up, once all have come; returns whether anything was done."""
        if self.done or not self.meeting.Test():
            return False
        for piece in self.pieces:
            self.comm.Allreduce(MPI.IN_PLACE, piece)
        self.done = True
        return True

    def is_over(self):
        """Whether the array is the sum."""
        return self.done

    def waits_for(self):
        """The library does not say whom: all others."""
        return [rank for rank in range(self.comm.size) if rank != self.comm.rank]
