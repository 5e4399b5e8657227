"""All-reduce in a fixed order: rank 0's part + rank 1's + ..., whatever the cut, the library or the arrival.

An array is cut into chunks, each of which belongs to one rank: the others send it their parts, it adds them up in rank
order and sends the sum back. So every byte travels twice, as in the best algorithms, all ranks add at the same time,
and a chunk is summed while it is in the cache. Short arrays are sent to everybody at once (``direct``). Works over any
transport of ``wire``; nothing here waits.

Between two ranks messages meet receives in the order of both, so chunks go first in, first out, through arrays too:
an array that is started later never overtakes one that was started before, on any rank.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.collective.direct import DirectAllReduce
from fleet_mpi.ranks.channels import Channel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleet_mpi.collective import reducer
    from fleet_mpi.wire.transport import Pending, Transport

    Chunk = tuple[np.ndarray, "Reduction"]                    # a part of an array, and what counts it
    Parts = dict[int, tuple[Pending, np.ndarray]]            # by the number of the rank they come from

# Bytes. Shorter chunks cost more calls than they overlap; longer ones leave the cache (benchmarks.allreduce).
CHUNK = 1 << 19
# Below this a chunk is not worth a message of its own.
SMALLEST = 1 << 12
# How many chunks are under way between two ranks: MPI copies what is posted and there before it returns.
WINDOW = 2
# An array is short if its copies to all others are no longer than this (two ranks, 32 KB: 68 -> 29 us; four, 256 KB:
# 488 -> 383 us; even at two ranks with 512 KB).
DIRECT = 1 << 19


class ExactAllReduce:
    """Sums arrays over some ranks of a transport; all must start the same arrays in the same order.

    ``between``: an all-reduce that a rank's own sums go through before they are sent back (``by_node``).
    """

    def __init__(self, transport: Transport, ranks: Iterable[int], chunk: int = CHUNK,
                 between: ExactAllReduce | None = None) -> None:
        self.transport, self.ranks, self.chunk = transport, list(ranks), chunk
        self.me = self.ranks.index(transport.rank)
        self.started = 0
        self.short, self.longest_short = DirectAllReduce(transport, self.ranks, add_in_order), 0
        if len(self.ranks) > 1 and between is None:
            self.longest_short = DIRECT // (len(self.ranks) - 1)
        self.own = _Own(self, between)
        self.lanes = {number: _Lane(transport, rank) for number, rank in enumerate(self.ranks) if number != self.me}

    def start(self, array: np.ndarray) -> reducer.Reduction:
        """Begin to replace a contiguous array, on every rank, by the sum; returns a Reduction to ``advance``."""
        if 0 < array.nbytes <= self.longest_short:
            return self.short.start(array)
        self.started += 1
        chunks = self._cut(array)
        made = Reduction(self, len(chunks))
        for start, stop, owner in chunks:
            (self.own if owner == self.me else self.lanes[owner]).todo.append((array[start:stop], made))
        return made

    def _cut(self, array: np.ndarray) -> list[tuple[int, int, int]]:
        """(start, stop, index of the owner) of every chunk; owners take turns, from array to array too."""
        count, size = len(self.ranks), array.itemsize
        length = max(1, min(self.chunk, max(SMALLEST, -(-array.nbytes // count))) // size)
        return [(start, min(start + length, len(array)), (self.started + number) % count)
                for number, start in enumerate(range(0, len(array), length))]

    def advance(self) -> bool:
        """Do what can be done now, for all arrays; returns whether anything was."""
        happened = self.own.advance()
        if self.short.under_way:
            happened = self.short.advance() or happened
        for lane in self.lanes.values():
            if lane.todo or lane.sending or lane.returning:
                happened = lane.advance() or happened
        return happened

    def waits_for(self) -> list[int]:
        """Those who have not sent their parts; where all have, those whose sums are awaited."""
        return sorted(self.own.waits_for() or self.short.waits_for()
                      or {lane.rank for lane in self.lanes.values() if not lane.is_empty()})


class Reduction:
    """One array on its way: as many chunks as have not come to their end."""

    __slots__ = ("group", "left")

    def __init__(self, group: ExactAllReduce, left: int) -> None:
        self.group, self.left = group, left

    def advance(self) -> bool:
        """Do what can be done now; returns whether anything was."""
        return self.left > 0 and self.group.advance()

    def is_over(self) -> bool:
        """Whether the array is the sum, and nobody reads it any more."""
        return not self.left

    def waits_for(self) -> list[int]:
        """The ranks that have not done their part, for this array or one before it."""
        return self.group.waits_for() if self.left else []


class _Lane:
    """The chunks that belong to another rank: each is sent there, and comes back."""

    def __init__(self, transport: Transport, rank: int) -> None:
        self.transport, self.rank = transport, rank
        self.todo: deque[Chunk] = deque()
        self.sending: deque[tuple[Pending, np.ndarray, Reduction]] = deque()
        self.returning: deque[tuple[Pending, Reduction]] = deque()

    def advance(self) -> bool:
        happened = False
        while self.todo and len(self.sending) < WINDOW:
            chunk, reduction = self.todo.popleft()
            chunk = chunk.view(np.uint8)
            self.sending.append((self.transport.post_send(self.rank, Channel.PART, chunk), chunk, reduction))
            happened = True
        # The sum comes to the same place: it may be expected there once the part is gone.
        while self.sending and self.sending[0][0].done():
            _, chunk, reduction = self.sending.popleft()
            self.returning.append((self.transport.post_receive(self.rank, Channel.SUM, chunk), reduction))
            happened = True
        while self.returning and self.returning[0][0].done():
            self.returning.popleft()[1].left -= 1
            happened = True
        return happened

    def is_empty(self) -> bool:
        return not (self.todo or self.sending or self.returning)


class _Own:
    """The chunks that belong to this rank: parts come in, are added up, and the sum goes out."""

    def __init__(self, group: ExactAllReduce, between: ExactAllReduce | None) -> None:
        self.group, self.between = group, between
        self.todo: deque[Chunk] = deque()
        self.receiving: deque[tuple[np.ndarray, Parts, Reduction, list[Pending]]] = deque()
        self.summing: deque[tuple[reducer.Reduction, np.ndarray, Reduction]] = deque()
        self.sending: deque[tuple[list[Pending], Reduction]] = deque()
        self.unused: dict[int, list[np.ndarray]] = {}  # buffers by length, from chunk to chunk

    def advance(self) -> bool:
        happened = bool(self.todo) and len(self.receiving) < WINDOW and self._post()
        while self.receiving:
            awaited = self.receiving[0][3]
            while awaited and awaited[-1].done():
                awaited.pop()
            if awaited:
                break
            self._add_up(*self.receiving.popleft()[:3])
            self._post()
            happened = True
        if self.summing:
            happened = self._advance_between() or happened
        while self.sending and all(pending.done() for pending in self.sending[0][0]):
            self.sending.popleft()[1].left -= 1
            happened = True
        return happened

    def _post(self) -> bool:
        """Expect the parts of the next chunks."""
        happened, group = False, self.group
        while self.todo and len(self.receiving) < WINDOW:
            chunk, reduction = self.todo.popleft()
            parts: Parts = {}
            for number, lane in group.lanes.items():
                buffer = self._take_buffer(chunk.nbytes)
                parts[number] = group.transport.post_receive(lane.rank, Channel.PART, buffer), buffer
            self.receiving.append((chunk, parts, reduction, [pending for pending, _ in parts.values()]))
            happened = True
        return happened

    def _add_up(self, chunk: np.ndarray, parts: Parts, reduction: Reduction) -> None:
        group = self.group
        add_in_order([chunk if number == group.me else parts[number][1].view(chunk.dtype)
                      for number in range(len(group.ranks))], chunk)
        for _, buffer in parts.values():
            self.unused[buffer.nbytes].append(buffer)
        if self.between is None:
            self._send_back(chunk, reduction)
        else:
            self.summing.append((self.between.start(chunk), chunk, reduction))

    def _advance_between(self) -> bool:
        happened = self.between.advance()  # type: ignore[union-attr]  # there is one where it sums
        while self.summing and self.summing[0][0].is_over():
            self._send_back(*self.summing.popleft()[1:])
            happened = True
        return happened

    def _send_back(self, chunk: np.ndarray, reduction: Reduction) -> None:
        total = chunk.view(np.uint8)
        self.sending.append(([self.group.transport.post_send(lane.rank, Channel.SUM, total)
                              for lane in self.group.lanes.values()], reduction))

    def _take_buffer(self, nbytes: int) -> np.ndarray:
        unused = self.unused.setdefault(nbytes, [])
        return unused.pop() if unused else arrays.empty(nbytes, np.uint8)

    def waits_for(self) -> set[int]:
        late = {self.group.ranks[number] for _, found, _, _ in list(self.receiving)[:1]
                for number, (pending, _) in found.items() if not pending.done()}
        return late if late or not self.summing else set(self.between.waits_for())  # type: ignore[union-attr]


def add_in_order(parts: Sequence[np.ndarray], out: np.ndarray) -> None:
    """Into ``out``, which may be one of the parts: their sum from the first to the last. The other parts are
    scratch."""
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


def _add_wide(parts: Sequence[np.ndarray], out: np.ndarray) -> None:
    """float16 is added up as float32 and rounded once."""
    total = parts[0].astype(np.float32)
    for part in parts[1:]:
        np.add(total, part, out=total)
    out[...] = total
