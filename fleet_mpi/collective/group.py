"""The workers of a collective job, as one of them sees them; and waiting for them without spinning or hanging."""

import numpy as np

from fleet_mpi.collective.broadcast import Broadcast
from fleet_mpi.collective.gathering import Gathering
from fleet_mpi.errors import Stalled
from fleet_mpi.wire import waiting


class Group:
    """Worker ``index`` of ``size``; ``lanes`` are transports whose ranks are the workers' numbers.

    Each lane is a communicator of its own: what goes over one does not wait for what goes over another.
    """

    def __init__(self, index, lanes, size, name_of=str):
        self.index, self.lanes, self.size, self.name_of = index, lanes, size, name_of

    @classmethod
    def over_mpi(cls, index, comms, name_of):
        """The group of all ranks of some communicators, which must be used by nothing else."""
        from fleet_mpi.wire.mpi import MPITransport
        return cls(index, [MPITransport(comm) for comm in comms], comms[0].size, name_of)

    @property
    def ranks(self):
        """The workers' numbers."""
        return list(range(self.size))

    def broadcast(self, arrays):
        """Collective: let every rank have worker 0's values in these arrays, which are contiguous host arrays."""
        if self.size > 1:
            for array in arrays:
                self.finish([Broadcast(self.lanes[0], self.ranks, array)], "the first values")

    def gather(self, parts):
        """Collective: every worker's list of host arrays, by worker; only their first dimension may differ."""
        if self.size == 1:
            return [parts]
        lane, lengths = self.lanes[0], np.zeros((self.size, len(parts)), np.int64)
        lengths[self.index] = [len(part) for part in parts]
        self.finish([Gathering(lane, self.ranks, [lengths[rank:rank + 1] for rank in self.ranks])], "row gradients")
        found = [parts if rank == self.index else [np.empty((length, *part.shape[1:]), part.dtype)
                                                   for length, part in zip(lengths[rank].tolist(), parts)]
                 for rank in self.ranks]
        for number in range(len(parts)):
            self.finish([Gathering(lane, self.ranks, [one[number] for one in found])], "row gradients")
        return found

    def library_reducers(self):
        """What sums by the MPI library's own calls, one per lane."""
        from fleet_mpi.collective.library import LibraryAllReduce
        return [LibraryAllReduce(lane.comm) for lane in self.lanes]

    def finish(self, under_way, what):
        """Advance all that is under way until it is over; Stalled names those who do not do their part."""
        backoff = waiting.Backoff()
        while not all(one.is_over() for one in under_way):
            if any([one.advance() for one in under_way]):
                backoff.wake()
            elif backoff.rest() > waiting.deadline():
                raise self._stalled(under_way, what)

    def _stalled(self, under_way, what):
        late = sorted({rank for one in under_way if not one.is_over() for rank in one.waits_for()})
        names = ", ".join(self.name_of(rank) for rank in late)
        error = Stalled(f"{self.name_of(self.index)}: {what}: waited {waiting.deadline():.1f} s for {names} "
                        f"(FLAGS_rpc_deadline sets it in ms)")
        error.told_elsewhere = self.index > min(set(self.ranks) - set(late), default=0)
        return error
