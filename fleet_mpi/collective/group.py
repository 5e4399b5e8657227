"""The workers of a collective job, as one of them sees them; and waiting for them without spinning or hanging."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.collective.broadcast import Broadcast
from fleet_mpi.collective.gathering import Gathering
from fleet_mpi.errors import PeerLost, Stalled
from fleet_mpi.ranks import liveness, waiting
from fleet_mpi.ranks.liveness import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from fleet_mpi.collective.reducer import Reducer, Reduction
    from fleet_mpi.ranks.liveness import Liveness


class Group:
    """Worker ``index`` of ``size``; ``lanes`` are transports whose ranks are the workers' numbers.

    Each lane is a communicator of its own: what goes over one does not wait for what goes over another.
    """

    def __init__(self, index: int, lanes: Sequence[Any], size: int, name_of: Callable[[int], str] = str,
                 liveness: Liveness | None = None) -> None:
        self.index, self.lanes, self.size, self.name_of, self.liveness = index, lanes, size, name_of, liveness
        self.first_step_s = 0.0  # others may compile
        self.by_library: Sequence[Reducer] | None = None
        self.by_nccl: dict[tuple[str, ...], Sequence[Reducer]] = {}  # by the devices of all workers
        self.left_behind: list[Reduction] = []  # what devices may still sum; the host has gone on
        self.at_failure: list[Callable[[], object]] = []  # what frees this worker of its peers when a wait has failed
        self.hosts = [""] * size
        self.job = ""  # what tells this start of the job from others; empty where nobody asked
        self.shares_memory = False  # whether workers are processes: then those of one host may

    @classmethod
    def over_mpi(cls, index: int, comms: Sequence[Any], name_of: Callable[[int], str],
                 liveness: Liveness | None = None) -> Group:
        """The group of all ranks of some communicators, which must be used by nothing else."""
        from fleet_mpi.wire.mpi import MPITransport
        made = cls(index, [MPITransport(comm, name_of) for comm in comms], comms[0].size, name_of, liveness)
        made.shares_memory = True
        return made

    @property
    def ranks(self) -> list[int]:
        """The workers' numbers."""
        return list(range(self.size))

    def broadcast(self, arrays: Iterable[np.ndarray]) -> None:
        """Collective: let every rank have worker 0's values in these arrays, which are contiguous host arrays."""
        if self.size > 1:
            for array in arrays:
                self.finish([Broadcast(self.lanes[0], self.ranks, array)], "the first values")

    def gather(self, parts: list[np.ndarray], meanwhile: Sequence[Reduction] = ()) -> list[list[np.ndarray]]:
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

    def gather_values(self, value: Any) -> list[Any]:
        """Collective: every worker's value, of what JSON can say, by worker."""
        found = self.gather([np.frombuffer(json.dumps(value).encode(), np.uint8)])
        return [json.loads(part.tobytes()) for part, in found]

    def library_reducers(self) -> Sequence[Reducer]:
        """Collective at first: what sums by the MPI library's own calls, one per lane."""
        if self.by_library is None:
            from fleet_mpi.collective.library import LibraryAllReduce
            queue: deque[Any] = deque()
            self.gather([np.zeros(1)])  # new communicators are waited for without end: first see that all have come
            self.by_library = [LibraryAllReduce(lane.comm, queue) for lane in self.lanes]
        return self.by_library

    def finish(self, under_way: Sequence[Reduction], what: str, meanwhile: Sequence[Reduction] = ()) -> None:
        """Advance all that is under way until it is over; Stalled names those who do not do their part."""
        left, moving = list(under_way), (*under_way, *meanwhile)

        def is_over() -> bool:
            while left and left[-1].is_over():
                left.pop()
            return not left

        def advance() -> bool:
            happened = False
            for one in moving:
                if one.advance():
                    happened = True
            return happened
        try:
            if not waiting.spin(is_over, advance):
                self._poll(is_over, advance, left, what)
        except BaseException:
            while self.at_failure:
                self.at_failure.pop()()
            raise
        if self.liveness is not None:
            self.liveness.passed(Place.EXCHANGE)

    def catch_up(self, what: str) -> None:
        """Wait until devices have made the sums that this worker went on from; fails as ``finish`` does."""
        left = self.left_behind.copy()
        self.left_behind.clear()
        if left:
            self.finish(left, what)

    def _poll(self, is_over: Callable[[], bool], advance: Callable[[], bool], left: Sequence[Reduction],
              what: str) -> None:
        deadline_s, members = waiting.deadline_s(), self.liveness
        look: Callable[[float], None] | None = None
        limit_s, looked_s = liveness.first_step_limit_s(deadline_s, self.first_step_s), 0.0
        if members is not None:
            notice_s, limit_s = liveness.notice_after_s(deadline_s), liveness.equal_limit_s(limit_s)

            def look(idle_s: float) -> None:
                nonlocal looked_s
                if idle_s >= notice_s:
                    looked_s = 0.0   # what it raises itself stands
                    members.look(Place.EXCHANGE, what)
                    looked_s = idle_s
        try:
            is_done = waiting.poll(is_over, advance, look, limit_s, waiting.SPIN_S)
        except PeerLost as lost:
            # A worker that has found a third one stalled gives up its device's peers, of which this is one.
            if members is None or not looked_s or not members.to_blame(Place.EXCHANGE):
                raise
            raise self._stalled((), what, looked_s) from lost
        if not is_done:
            raise self._stalled({rank for one in left if not one.is_over() for rank in one.waits_for()}, what, limit_s)

    def _stalled(self, late: Iterable[int], what: str, limit_s: float) -> Stalled:
        if self.liveness is not None:
            # Who waits as this one does is not to blame, also where this one waits for it.
            late = self.liveness.to_blame(Place.EXCHANGE) or late
        names = ", ".join(self.name_of(rank) for rank in sorted(late))
        error = Stalled(f"{self.name_of(self.index)}: {what}: waited {limit_s:.1f} s for {names} (FLAGS_rpc_deadline "
                        f"sets it in ms)")
        return liveness.report_by_first(error, self.index, set(self.ranks) - set(late))
