"""The workers of a collective job, as one of them sees them; and waiting for them without spinning or hanging."""

from collections import deque

import numpy as np

from fleet_mpi.collective.broadcast import Broadcast
from fleet_mpi.collective.gathering import Gathering
from fleet_mpi.collective.presence import NOTICE_S, Place
from fleet_mpi.errors import Stalled
from fleet_mpi.wire import waiting

LOOK_AFTER_S = 0.05  # a wait that is shorter is none


class Group:
    """Worker ``index`` of ``size``; ``lanes`` are transports whose ranks are the workers' numbers.

    Each lane is a communicator of its own: what goes over one does not wait for what goes over another.
    """

    def __init__(self, index, lanes, size, name_of=str, presence=None):
        self.index, self.lanes, self.size, self.name_of, self.presence = index, lanes, size, name_of, presence
        self.patience_s = 0.0  # of a first step: others may compile
        self.by_library = None
        self.hosts = [""] * size
        self.job = ""  # what tells this start of the job from others; empty where nobody asked
        self.shares_memory = False  # whether workers are processes: then those of one host may

    @classmethod
    def over_mpi(cls, index, comms, name_of, presence=None):
        """The group of all ranks of some communicators, which must be used by nothing else."""
        from fleet_mpi.wire.mpi import MPITransport
        made = cls(index, [MPITransport(comm, name_of) for comm in comms], comms[0].size, name_of, presence)
        made.shares_memory = True
        return made

    @property
    def ranks(self):
        """The workers' numbers."""
        return list(range(self.size))

    def broadcast(self, arrays):
        """Collective: let every rank have worker 0's values in these arrays, which are contiguous host arrays."""
        if self.size > 1:
            for array in arrays:
                self.finish([Broadcast(self.lanes[0], self.ranks, array)], "the first values")

    def gather(self, parts, meanwhile=()):
        """Collective: every worker's list of host arrays, by worker; only their first dimension may differ.

        What is under way besides goes on ``meanwhile``: others may wait for it before they come here.
        """
        if self.size == 1:
            return [parts]
        lane, lengths = self.lanes[0], np.zeros((self.size, len(parts)), np.int64)
        lengths[self.index] = [len(part) for part in parts]
        self.finish([Gathering(lane, self.ranks, [lengths[rank:rank + 1] for rank in self.ranks])],
                    "the gathered values",
                    meanwhile)
        found = [parts if rank == self.index else [np.empty((length, *part.shape[1:]), part.dtype)
                                                   for length, part in zip(lengths[rank].tolist(), parts)]
                 for rank in self.ranks]
        for number in range(len(parts)):
            self.finish([Gathering(lane, self.ranks, [one[number] for one in found])], "the gathered values",
                        meanwhile)
        return found

    def library_reducers(self):
        """Collective at first: what sums by the MPI library's own calls, one per lane."""
        if self.by_library is None:
            from fleet_mpi.collective.library import LibraryAllReduce
            queue = deque()
            self.gather([np.zeros(1)])  # new communicators are waited for without end: first see that all have come
            self.by_library = [LibraryAllReduce(lane.comm, queue) for lane in self.lanes]
        return self.by_library

    def finish(self, under_way, what, meanwhile=()):
        """Advance all that is under way until it is over; Stalled names those who do not do their part."""
        backoff = waiting.Backoff()
        while not all(one.is_over() for one in under_way):
            if any([one.advance() for one in (*under_way, *meanwhile)]):
                backoff.wake()
            else:
                self._look(backoff.rest(), under_way, what)
        if self.presence is not None:
            self.presence.passed(Place.EXCHANGE)

    def _look(self, idle_s, under_way, what):
        """Whether it is worth to wait on, after so long without anything that happened."""
        longest = max(waiting.deadline(), self.patience_s)
        if self.presence is not None and idle_s > LOOK_AFTER_S:
            self.presence.look(Place.EXCHANGE, what, idle_s)
            longest += 2 * NOTICE_S  # for those who began to wait later, and tell so only now
        if idle_s > longest:
            raise self._stalled(_late(under_way), what, longest)

    def _stalled(self, late, what, longest):
        if self.presence is not None:
            # Who waits as this one does is not to blame, also where this one waits for it.
            late = set(self.presence.others) - self.presence.are_held_up(Place.EXCHANGE) or late
        names = ", ".join(self.name_of(rank) for rank in sorted(late))
        error = Stalled(f"{self.name_of(self.index)}: {what}: waited {longest:.1f} s for {names} (FLAGS_rpc_deadline "
                        f"sets it in ms)")
        error.told_elsewhere = self.index > min(set(self.ranks) - set(late), default=0)
        return error


def _late(under_way):
    return {rank for one in under_way if not one.is_over() for rank in one.waits_for()}
