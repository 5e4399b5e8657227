"""Who is there, who is late, who has left: the rules for all ranks, and what equal workers tell each other.

Whoever waits and knows more speaks first, so that the sentence is about the rank at fault:

    watcher of a machine         for a rank that is stopped                 0.8 of the deadline
    server                       for a worker, or another server            the deadline
    worker                       for a server, which may name a worker      ``worker_limit_s``: some longer
    equal worker                 for another one                            ``equal_limit_s``: some longer
    machine                      for another one's beat                     the deadline; beats every ``beat_every_s``

A rank in its first step, where kernels are compiled, is waited for at least ``FIRST_STEP_S``. One that says that it
waits itself is not to blame. Of several that find the same, the first reports it (``report_by_first``).

A worker that ends in order tells the others so, and one that has waited for half a second tells what for. From that
follows at once what else would show only at the deadline, if rightly: somebody has left, or two workers wait for each
other at different places (one for gradients, one in a barrier). Works over any transport of ``wire``.
"""

from __future__ import annotations

import enum
import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fleet_mpi.errors import FleetError, PeerLost, UsageError
from fleet_mpi.ranks import waiting
from fleet_mpi.ranks.channels import Channel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol, TypeVar

    class Pending(Protocol):
        """A message on its way."""

        def done(self) -> bool:
            """Whether it is over."""

    class Transport(Protocol):
        """What is asked of a transport of ``wire``, which lies above."""

        rank: int

        def inbox(self, nbytes: int) -> np.ndarray:
            """An array for messages of at most so many bytes."""

        def post_send(self, peer: int, channel: Channel, array: np.ndarray) -> Pending:
            """Start sending."""

        def post_receive(self, peer: int, channel: Channel, array: np.ndarray) -> Pending:
            """Start receiving."""

        def progress(self) -> bool:
            """Let what is under way go on."""

    Error = TypeVar("Error", bound=FleetError)

FIRST_STEP_S = 60.0   # compiling took 15 s with more ranks than cores; a deadline that is longer stays what it is
FINISHING_S = 5.0     # for a request that is under way when an exception comes from outside
NOTICE_S = 0.5        # so long a worker waits before it tells the others
NOTICE_PART = 0.25    # of the deadline: where that is shorter, and for a worker that waits for a server
BEAT_S = 1.0
HEAR_EVERY = 64       # waits: what others tell must not pile up with one who never waits for long

_RECORD = struct.Struct("<5q88s")
_STEPS = "all workers must run the same number of steps, from as many batches each"
_CALLS = "all workers must make the same calls in the same order"


# ---------------------------------------------------------------------- how long is too long

def first_step_limit_s(limit_s: float, first_step_s: float = FIRST_STEP_S) -> float:
    """How long a first step is waited for, where a later one is waited for ``limit_s``."""
    return max(limit_s, first_step_s)


def worker_limit_s(limit_s: float) -> float:
    """How long a worker waits for a server, which waits ``limit_s`` for another worker and then names that one."""
    return limit_s * 1.1 + min(2.0, limit_s)


def equal_limit_s(limit_s: float) -> float:
    """How long equal workers that tell each other wait: for those who began to wait later, and tell so only now."""
    return limit_s + 2 * NOTICE_S


def notice_after_s(deadline_s: float) -> float:
    """After how long an equal worker tells the others what it waits for."""
    return min(NOTICE_S, deadline_s * NOTICE_PART)


def beat_every_s(deadline_s: float) -> float:
    """How often machines show each other that they live."""
    return min(BEAT_S, deadline_s / 8)


def report_by_first(error: Error, index: int, reporters: Iterable[int] = (0,)) -> Error:
    """The error, marked where ``index`` is not the first of those who find the same: that one reports it."""
    error.reported_by_peer = index > min(reporters, default=0)
    return error


# ---------------------------------------------------------------------- equal workers

class Place(enum.IntEnum):
    """Where workers wait for each other, each kind counted by itself."""

    EXCHANGE = 0   # of gradients and other values, by the programs
    MEETING = 1    # barriers and the like, by the script


class News(NamedTuple):
    """What a worker tells: whether it leaves or waits; how many exchanges, meetings and steps it has behind it."""

    leaves: bool
    place: Place
    exchanges: int
    meetings: int
    steps: int
    what: str

    def done(self, place: Place) -> int:
        """How many waits of this kind are over."""
        return self.exchanges if place == Place.EXCHANGE else self.meetings

    def pack(self) -> np.ndarray:
        """As bytes."""
        return np.frombuffer(_RECORD.pack(*self[:5], self.what.encode()[:88]), np.uint8)

    @classmethod
    def unpack(cls, buffer: Any) -> News:
        """From bytes."""
        leaves, place, exchanges, meetings, steps, what = _RECORD.unpack(buffer)
        return cls(bool(leaves), Place(place), exchanges, meetings, steps, what.rstrip(b"\0").decode(errors="replace"))


class Liveness:
    """What worker ``transport.rank`` of ``size`` knows of the others; ``steps()`` says how many it has done."""

    def __init__(self, transport: Transport, size: int, name_of: Callable[[int], str] = str,
                 steps: Callable[[], int] = lambda: 0) -> None:
        self.transport, self.name_of, self.steps = transport, name_of, steps
        self.me, self.size = transport.rank, size
        self.others = [rank for rank in range(size) if rank != self.me]
        self.done = [0, 0]    # exchanges and meetings
        self.news: dict[int, News] = {}   # the last of each other worker
        self.sent: list[Pending] = []
        self.told: tuple[int, ...] | None = None   # the place and ``done`` that the others know
        self.has_left = False
        self.coming = {rank: self._listen(rank) for rank in self.others}

    def _listen(self, rank: int) -> tuple[np.ndarray, Pending]:
        buffer = self.transport.inbox(_RECORD.size)
        return buffer, self.transport.post_receive(rank, Channel.NEWS, buffer)

    def hear(self) -> None:
        """Take what the others have told."""
        for rank, (buffer, pending) in list(self.coming.items()):
            while pending.done():
                self.news[rank] = News.unpack(buffer)
                if self.news[rank].leaves:
                    del self.coming[rank]
                    break
                buffer, pending = self.coming[rank] = self._listen(rank)

    def passed(self, place: Place) -> None:
        """A wait at such a place is over."""
        self.done[place] += 1
        if self.done[place] % HEAR_EVERY == 0:
            self.hear()

    def look(self, place: Place, what: str) -> None:
        """Report a wait longer than ``notice_after_s`` to the others; raise if one of them can never come."""
        position = place, *self.done
        if self.told != position:
            self.told = position
            self._tell(False, place, what)
        self.hear()
        for rank, theirs in sorted(self.news.items()):
            if theirs.leaves and theirs.done(place) <= self.done[place]:
                raise self._reported_once(PeerLost(
                    f"{what}: {self.name_of(rank)} has ended after {theirs.steps} steps, this worker has done "
                    f"{self.steps()} and goes on: "
                    f"{_STEPS if place == Place.EXCHANGE else _CALLS}"))
            if self._wait_crosswise(place, theirs):
                raise self._reported_once(UsageError(
                    f"{what}: {self.name_of(rank)} has done {theirs.steps} steps and waits for something else "
                    f"({theirs.what}), this worker has done {self.steps()}: {_STEPS}; {_CALLS}"))

    def _wait_crosswise(self, place: Place, theirs: News) -> bool:
        """Whether this worker and another wait for each other, each at a place that the other has not reached."""
        return (not theirs.leaves and theirs.place != place and theirs.done(theirs.place) >= self.done[theirs.place]
                and self.done[place] >= theirs.done(place))

    def _reported_once(self, error: Error) -> Error:
        return report_by_first(error, self.me, [rank for rank in range(self.size)
                                                if not (rank in self.news and self.news[rank].leaves)])

    def to_blame(self, place: Place) -> set[int]:
        """The workers that are not known to wait as this one does, at the same place."""
        return set(self.others) - {rank for rank, theirs in self.news.items()
                                   if not theirs.leaves and theirs.place == place
                                   and theirs.done(place) == self.done[place]}

    def leave(self) -> None:
        """Announce a normal exit, and wait until all workers have announced theirs. Idempotent."""
        if self.has_left:
            return
        self.has_left = True
        self._tell(True, Place.EXCHANGE, "has ended")
        waiting.poll(self._all_have_left, self.transport.progress)

    def _all_have_left(self) -> bool:
        self.hear()
        return not self.coming and all(pending.done() for pending in self.sent)

    def at_meetings(self) -> MeetingLiveness:
        """What ``ranks.meeting`` asks while workers meet."""
        return MeetingLiveness(self)

    def _tell(self, leaves: bool, place: Place, what: str) -> None:
        exchanges, meetings = self.done
        record = News(leaves, place, exchanges, meetings, self.steps(), what).pack()
        self.sent = [pending for pending in self.sent if not pending.done()]
        for rank in self.others:
            if leaves or not (rank in self.news and self.news[rank].leaves):
                self.sent.append(self.transport.post_send(rank, Channel.NEWS, record))


class MeetingLiveness(NamedTuple):
    """A liveness as meetings see it: everybody must come."""

    workers: Liveness

    def look(self, what: str) -> None:
        """In a long wait."""
        self.workers.look(Place.MEETING, what)

    def passed(self) -> None:
        """After it."""
        self.workers.passed(Place.MEETING)
