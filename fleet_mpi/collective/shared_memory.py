"""Sums in rank order between workers of one machine: nothing is sent, each adds up its share where the gradients lie.

The flat gradients of all workers are rows of one piece of shared memory. A worker says that its row is ready; when all
have said so, each adds up its share of the columns, in rank order, and writes the sum to every row. The bits are those
of ``exact``. Two counters a worker are all that is waited for, so a wait can be given up and names who is late.

Where memory is not shared (``wire/segments``), messages are used.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import settings
from fleet_mpi.arrays import aligned
from fleet_mpi.collective.exact import ExactAllReduce
from fleet_mpi.kernels.reference.shared_sums import sum_everywhere
from fleet_mpi.wire import segments
from fleet_mpi.wire.segments import PAGE, pages

if TYPE_CHECKING:
    from collections.abc import Sequence
    from mmap import mmap
    from types import ModuleType

    from fleet_mpi.arrays import Array
    from fleet_mpi.collective.group import Group
    from fleet_mpi.collective.reducer import Reducer, Reduction

    Share = tuple[np.ndarray, int, int]   # all rows, the first column, the last one + 1

COUNTERS_BYTES = 256   # of a worker and lane: two counters, far enough apart that no processor fetches both at once
ARRIVED, DONE = 0, COUNTERS_BYTES // 16
SUMMED = (np.dtype(np.float32), np.dtype(np.float64))


def shared_reducers(reducers: Sequence[Reducer], group: Group, nbytes: int,
                    xp: ModuleType) -> tuple[Sequence[Reducer], np.ndarray | None]:
    """Collective: (reducers, memory for ``nbytes`` of gradients): shared if possible and if they sum in rank order.

    Otherwise the given reducers, and None.
    """
    # What is the same for all decides whether they ask each other; what a worker's own environment says, is its answer.
    possible = (group.shares_memory and len(set(group.hosts)) == 1 and nbytes
                and all(type(one) is ExactAllReduce for one in reducers))
    willing = settings.get("FLEET_MPI_SHARED_MEMORY") and xp is np
    shared = attach(group, nbytes, willing) if possible else None
    if shared is None:
        return reducers, None
    return [SharedAllReduce(shared, lane, one) for lane, one in enumerate(reducers)], shared.mine


class SharedRows:
    """The shared memory: row ``index`` of ``rows`` (uint8) is this worker's."""

    def __init__(self, memory: mmap, index: int, size: int, lanes: int, nbytes: int) -> None:
        self.index, self.size, self.nbytes = index, size, nbytes
        whole = np.frombuffer(memory, np.uint8)
        first = PAGE + counters_bytes(size, lanes)
        self.counters = memoryview(memory)[PAGE:first].cast("q")
        self.rows = whole[first:].reshape(size, pages(nbytes))
        self.mine = self.rows[index, :nbytes]
        self.address = self.mine.ctypes.data

    def place_of(self, array: Array) -> Share | None:
        """(rows of the array's type, first column, last column + 1), or None where the array is not in this worker's
        row."""
        start = array.__array_interface__["data"][0] - self.address
        if array.dtype not in SUMMED or not 0 <= start <= self.nbytes - array.nbytes:
            return None
        first = start // array.itemsize
        return self.rows.view(array.dtype), first, first + len(array)


def counters_bytes(size: int, lanes: int) -> int:
    """What the counters of all workers take, in whole pages."""
    return pages(size * lanes * COUNTERS_BYTES)


def attach(group: Group, nbytes: int, willing: bool = True) -> SharedRows | None:
    """Collective: SharedRows with ``nbytes`` for each worker of a group; None, for all, where memory is not shared."""
    memory = segments.share(group.gather, group.index, size_of(group.size, len(group.lanes), nbytes), willing)
    return None if memory is None else SharedRows(memory, group.index, group.size, len(group.lanes), nbytes)


def size_of(size: int, lanes: int, nbytes: int) -> int:
    """Bytes of the whole: a page for the number by which it is known, counters, rows."""
    return PAGE + counters_bytes(size, lanes) + size * pages(nbytes)


class SharedAllReduce:
    """Sums arrays that lie in a worker's row of SharedRows; others by ``messages``. All must start the same, in one
    order."""

    def __init__(self, shared: SharedRows, lane: int, messages: Reducer) -> None:
        self.rows, self.messages = shared, messages
        first = lane * shared.size
        places = [(first + rank) * COUNTERS_BYTES // 8 for rank in range(shared.size)]
        self.arrivals, self.ends = [one + ARRIVED for one in places], [one + DONE for one in places]
        self.started = self.summed = 0
        self.shares: deque[Share] = deque()
        # This worker's share by array: buckets are few, and come again and again.
        self.known: dict[tuple[int, int, np.dtype], Share | None] = {}

    def start(self, array: Array) -> Reduction:
        """Begin to replace a contiguous array, on every rank, by the sum; returns a Reduction to ``advance``."""
        share = self._share(array)
        if share is None:
            return self.messages.start(array)
        self.started += 1
        self.shares.append(share)
        self.rows.counters[self.arrivals[self.rows.index]] = self.started
        return _Reduction(self, self.started)

    def _share(self, array: Array) -> Share | None:
        key = array.__array_interface__["data"][0], len(array), array.dtype
        if key not in self.known:
            self.known[key] = self._cut(array)
        return self.known[key]

    def _cut(self, array: Array) -> Share | None:
        place = self.rows.place_of(array)
        if place is None:
            return None
        rows, start, stop = place
        length = aligned(-(-(stop - start) // self.rows.size))
        first = start + length * self.rows.index
        return rows, min(first, stop), min(first + length, stop)

    def advance(self) -> bool:
        """Add up this worker's share of every array that all have; returns whether there was one."""
        counters, happened = self.rows.counters, False
        while self.shares and all([counters[place] > self.summed for place in self.arrivals]):
            sum_everywhere(*self.shares.popleft())
            self.summed += 1
            counters[self.ends[self.rows.index]] = self.summed
            happened = True
        return happened

    def is_over(self, number: int) -> bool:
        """Whether all have added up their shares of the array that was started as the ``number``-th."""
        counters = self.rows.counters
        return all([counters[place] >= number for place in self.ends])

    def waits_for(self, number: int) -> list[int]:
        """Those who have not come with an array; where all have, those who have not added up their share."""
        counters = self.rows.counters
        late = [rank for rank, place in enumerate(self.arrivals) if counters[place] < number]
        return late or [rank for rank, place in enumerate(self.ends) if counters[place] < number]


class _Reduction:
    """One array."""

    __slots__ = ("group", "number")

    def __init__(self, group: SharedAllReduce, number: int) -> None:
        self.group, self.number = group, number

    def advance(self) -> bool:
        """Do what can be done now; returns whether anything was."""
        return self.group.advance()

    def is_over(self) -> bool:
        """Whether the array is the sum, and nobody writes to it any more."""
        return self.group.is_over(self.number)

    def waits_for(self) -> list[int]:
        """The ranks that have not done their part."""
        return self.group.waits_for(self.number)
