"""Who of a job's workers is still there, and what it waits for: so that nobody waits for one who will never come.

A worker that ends in order tells the others so, and one that has waited for half a second tells what for. From that
follows at once what else would show only at the deadline, if rightly: somebody has left, or two workers wait for each
other at different places (one for gradients, one in a barrier). Works over any transport of ``wire``.
"""

import enum
import struct
from typing import NamedTuple

import numpy as np

from fleet_mpi.errors import PeerLost, UsageError
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import waiting

NOTICE_S = 0.5   # so long a worker waits before it tells
HEAR_EVERY = 64  # waits: what others tell must not pile up with one who never waits for long

_RECORD = struct.Struct("<5q88s")
_STEPS = "all workers must run the same number of steps, from as many batches each"
_CALLS = "all workers must make the same calls in the same order"


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

    def count(self, place):
        """How many waits of this kind are over."""
        return self.exchanges if place == Place.EXCHANGE else self.meetings

    def pack(self):
        """As bytes."""
        return np.frombuffer(_RECORD.pack(*self[:5], self.what.encode()[:88]), np.uint8)

    @classmethod
    def unpack(cls, buffer):
        """From bytes."""
        leaves, place, *counts, what = _RECORD.unpack(buffer)
        return cls(bool(leaves), Place(place), *counts, what.rstrip(b"\0").decode(errors="replace"))


class Presence:
    """What worker ``transport.rank`` of ``size`` knows of the others; ``steps()`` says how many it has done."""

    def __init__(self, transport, size, name_of=str, steps=lambda: 0):
        self.transport, self.name_of, self.steps = transport, name_of, steps
        self.me, self.size = transport.rank, size
        self.others = [rank for rank in range(size) if rank != self.me]
        self.done = [0, 0]    # exchanges and meetings
        self.news = {}        # the last of each other worker
        self.sent, self.told = [], None
        self.has_left = False
        self.coming = {rank: self._listen(rank) for rank in self.others}

    def _listen(self, rank):
        buffer = self.transport.inbox(_RECORD.size)
        return buffer, self.transport.post_receive(rank, Channel.NEWS, buffer)

    def take_in(self):
        """Hear what has come."""
        for rank, (buffer, pending) in list(self.coming.items()):
            while pending.done():
                self.news[rank] = News.unpack(buffer)
                if self.news[rank].leaves:
                    del self.coming[rank]
                    break
                buffer, pending = self.coming[rank] = self._listen(rank)

    def passed(self, place):
        """A wait at such a place is over."""
        self.done[place] += 1
        if self.done[place] % HEAR_EVERY == 0:
            self.take_in()

    def look(self, place, what, idle_s):
        """While waiting: tell the others if it takes long; raise if one of them will never come."""
        if idle_s < min(NOTICE_S, waiting.deadline() / 4):
            return
        position = place, *self.done
        if self.told != position:
            self.told = position
            self._tell(False, place, what)
        self.take_in()
        for rank, theirs in sorted(self.news.items()):
            if theirs.leaves and theirs.count(place) <= self.done[place]:
                raise self._told_once(PeerLost(
                    f"{what}: {self.name_of(rank)} has ended after {theirs.steps} steps, this worker has done "
                    f"{self.steps()} and goes on: "
                    f"{_STEPS if place == Place.EXCHANGE else _CALLS}"))
            if self._wait_crosswise(place, theirs):
                raise self._told_once(UsageError(
                    f"{what}: {self.name_of(rank)} has done {theirs.steps} steps and waits for something else "
                    f"({theirs.what}), this worker has done {self.steps()}: {_STEPS}; {_CALLS}"))

    def _wait_crosswise(self, place, theirs):
        """Whether another worker waits at a place of the other kind that this one has not come to, nor it to this."""
        return (not theirs.leaves and theirs.place != place and theirs.count(theirs.place) >= self.done[theirs.place]
                and self.done[place] >= theirs.count(place))

    def _told_once(self, error):
        present = [rank for rank in range(self.size) if not (rank in self.news and self.news[rank].leaves)]
        error.told_elsewhere = self.me > min(present)
        return error

    def are_held_up(self, place):
        """The workers that are known to wait as this one does, at the same place."""
        return {rank for rank, theirs in self.news.items()
                if not theirs.leaves and theirs.place == place and theirs.count(place) == self.done[place]}

    def leave(self):
        """This process ends in order: tell all, and wait until all have ended. May be called again."""
        if self.has_left:
            return
        self.has_left = True
        self._tell(True, Place.EXCHANGE, "has ended")
        backoff = waiting.Backoff()
        while self.coming or not all(pending.done() for pending in self.sent):
            self.take_in()
            self.transport.progress()
            backoff.rest()

    def meets(self):
        """What ``ranks.meeting`` asks while workers meet."""
        return _AtMeetings(self)

    def _tell(self, leaves, place, what):
        record = News(leaves, place, *self.done, self.steps(), what).pack()
        self.sent = [pending for pending in self.sent if not pending.done()]
        for rank in self.others:
            if leaves or not (rank in self.news and self.news[rank].leaves):
                self.sent.append(self.transport.post_send(rank, Channel.NEWS, record))


class _AtMeetings(NamedTuple):
    """A presence as meetings see it: everybody must come."""

    presence: Presence

    def look(self, what, idle_s):
        """While waiting."""
        self.presence.look(Place.MEETING, what, idle_s)

    def passed(self):
        """After it."""
        self.presence.passed(Place.MEETING)
