"""All-reduce in a fixed order: rank 0's part + rank 1's + ..., whatever the cut, the library or the arrival.

An array is cut into chunks, each of which belongs to one rank: the others send it their parts, it adds them up in rank
order and sends the sum back. So every byte travels twice, as in the best algorithms, all ranks add at the same time,
and a chunk is summed while it is in the cache. Works over any transport of ``wire``; nothing here waits.
"""

import enum
from collections import deque

import numpy as np

from fleet_mpi import arrays

# Bytes. Shorter chunks cost more calls than they overlap; longer ones leave the cache (benchmarks.allreduce).
CHUNK = 1 << 19
# Below this a chunk is not worth a message of its own.
SMALLEST = 1 << 12
# How many chunks are under way between two ranks: MPI copies what is posted and there before it returns.
WINDOW = 2


class Channel(enum.IntEnum):
    """The two ways of a chunk: to its rank, and back as a sum."""

    PART = 1
    SUM = 2


class ExactAllReduce:
    """Sums arrays over the ranks of a transport; all must start the same arrays in the same order."""

    def __init__(self, transport, ranks, chunk=CHUNK):
        self.transport, self.ranks, self.chunk = transport, list(ranks), chunk
        self.me = self.ranks.index(transport.rank)
        self.started = 0
        self.unused = {}  # buffers by length, from reduction to reduction

    def start(self, array):
        """Begin to replace a contiguous array, on every rank, by the sum; returns a Reduction to ``advance``."""
        self.started += 1
        return Reduction(self, array, self._cut(array))

    def _cut(self, array):
        """(start, stop, index of the owner) of every chunk; owners take turns, from array to array too."""
        count, size = len(self.ranks), array.itemsize
        length = min(self.chunk, max(SMALLEST, -(-array.nbytes // count))) // size
        return [(start, min(start + length, len(array)), (self.started + number) % count)
                for number, start in enumerate(range(0, len(array), length))]

    def take_buffer(self, nbytes):
        """A buffer for one part."""
        unused = self.unused.setdefault(nbytes, [])
        return unused.pop() if unused else arrays.empty(nbytes, np.uint8)

    def give_back(self, buffer):
        """A buffer for others."""
        self.unused[len(buffer)].append(buffer)


class Reduction:
    """One array on its way."""

    def __init__(self, group, array, chunks):
        self.lanes = [_Lane(group, array, number, [(a, b) for a, b, owner in chunks if owner == number])
                      for number in range(len(group.ranks)) if number != group.me]
        self.own = _Own(group, array, [(a, b) for a, b, owner in chunks if owner == group.me])

    def advance(self):
        """Do what can be done now; returns whether anything was."""
        happened = self.own.advance()
        for lane in self.lanes:
            happened = lane.advance() or happened
        return happened

    def is_over(self):
        """Whether the array is the sum, and nobody reads it any more."""
        return self.own.is_over() and all(lane.is_over() for lane in self.lanes)

    def waits_for(self):
        """The ranks that have not done their part."""
        return sorted(self.own.waits_for().union(lane.rank for lane in self.lanes if not lane.is_over()))


class _Lane:
    """The chunks that belong to another rank: each is sent there, and comes back."""

    def __init__(self, group, array, number, chunks):
        self.transport, self.rank = group.transport, group.ranks[number]
        self.todo = deque(array[start:stop].view(np.uint8) for start, stop in chunks)
        self.sending, self.returning = deque(), deque()

    def advance(self):
        happened = False
        while self.todo and len(self.sending) < WINDOW:
            chunk = self.todo.popleft()
            self.sending.append((self.transport.post_send(self.rank, Channel.PART, chunk), chunk))
            happened = True
        # The sum comes to the same place: it may be expected there once the part is gone.
        while self.sending and self.sending[0][0].done():
            chunk = self.sending.popleft()[1]
            self.returning.append(self.transport.post_receive(self.rank, Channel.SUM, chunk))
            happened = True
        while self.returning and self.returning[0].done():
            self.returning.popleft()
            happened = True
        return happened

    def is_over(self):
        return not (self.todo or self.sending or self.returning)


class _Own:
    """The chunks that belong to this rank."""

    def __init__(self, group, array, chunks):
        self.group, self.array = group, array
        self.todo, self.receiving, self.sending = deque(chunks), deque(), deque()

    def advance(self):
        happened = self._post()
        while self.receiving and all(pending.done() for pending, _ in self.receiving[0][1].values()):
            self._add_up(*self.receiving.popleft())
            self._post()
            happened = True
        while self.sending and self.sending[0][1].done():
            self.sending.popleft()
            happened = True
        return happened

    def _post(self):
        happened, group = False, self.group
        while self.todo and len(self.receiving) < WINDOW:
            chunk = self.array[slice(*self.todo.popleft())]
            parts = {}
            for number, rank in enumerate(group.ranks):
                if number != group.me:
                    buffer = group.take_buffer(chunk.nbytes)
                    parts[number] = group.transport.post_receive(rank, Channel.PART, buffer), buffer
            self.receiving.append((chunk, parts))
            happened = True
        return happened

    def _add_up(self, chunk, parts):
        group = self.group
        add_in_order([chunk if number == group.me else parts[number][1].view(chunk.dtype)
                      for number in range(len(group.ranks))], chunk)
        for _, buffer in parts.values():
            group.give_back(buffer)
        for number in parts:
            rank = group.ranks[number]
            self.sending.append((rank, group.transport.post_send(rank, Channel.SUM, chunk.view(np.uint8))))

    def is_over(self):
        return not (self.todo or self.receiving or self.sending)

    def waits_for(self):
        parts = {self.group.ranks[number] for _, found in list(self.receiving)[:1]
                 for number, (pending, _) in found.items() if not pending.done()}
        return parts.union(rank for rank, pending in self.sending if not pending.done())


def add_in_order(parts, out):
    """Into ``out``, one of the parts: their sum from the first to the last. The other parts are scratch."""
    if len(parts) == 1:
        return
    if out.dtype == np.float16:
        _add_wide(parts, out)
        return
    total = out if len(parts) == 2 else next(one for one in parts[:2] if one is not out)
    np.add(parts[0], parts[1], out=total)
    for part in parts[2:-1]:
        np.add(total, part, out=total)
    if len(parts) > 2:
        np.add(total, parts[-1], out=out)


def _add_wide(parts, out):
    """float16 is added up as float32 and rounded once."""
    total = parts[0].astype(np.float32)
    for part in parts[1:]:
        np.add(total, part, out=total)
    out[...] = total
