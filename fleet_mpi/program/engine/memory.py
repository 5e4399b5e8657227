"""Which temporaries share memory: each gets an offset in one arena, by when it lives.

Knows intervals and sizes only, no ops.
"""

from bisect import insort

import numpy as np

from fleet_mpi import arrays

# Below this, sharing saves nothing worth the time it takes to work out.
SHARE_FROM_BYTES = 4 << 20


class Buffer:
    """Memory needed from one step of a plan to another; ``last_use`` is when the last name in it is read."""

    __slots__ = ("start", "end", "size_bytes", "offset", "last_use")

    def __init__(self, start, size_bytes):
        self.start = start
        self.end = start
        self.size_bytes = size_bytes
        self.offset = 0
        self.last_use = start


def place(buffers):
    """Give every buffer an offset so that those alive at the same time do not meet; returns the total.

    Largest first, each at the lowest gap among those placed that live at the same time.
    """
    unit = arrays.ALIGNMENT_BYTES
    sizes = [-(-one.size_bytes // unit) * unit for one in buffers]
    if sum(sizes) < SHARE_FROM_BYTES:
        return _one_after_the_other(buffers, sizes)
    order = sorted((i for i, size in enumerate(sizes) if size), key=lambda i: (-sizes[i], buffers[i].start))
    placed, total = [], 0  # (begin, finish, first step, last step) of each, sorted by begin
    for i in order:
        mine, size = buffers[i], sizes[i]
        offset, first, last = 0, mine.start, mine.end
        for begin, finish, start, end in placed:
            if start <= last and first <= end:
                if begin - offset >= size:
                    break
                if finish > offset:
                    offset = finish
        mine.offset = offset
        insort(placed, (offset, offset + size, first, last))
        total = max(total, offset + size)
    return total


def _one_after_the_other(buffers, sizes):
    total = 0
    for one, size in zip(buffers, sizes):
        one.offset = total
        total += size
    return total


class Arena:
    """One growing piece of memory that all plans of a program take their temporaries from.

    Plans of one program never run at the same time, so a plan for a smaller last batch costs
    nothing. ``let_go`` is called before the memory is replaced: plans made before would keep the old piece
    alive beside the new one, so their owner drops them.
    """

    def __init__(self, xp=np, let_go=None):
        self.xp = xp
        self._let_go = let_go
        self._bytes = arrays.empty((0,), np.uint8, xp)
        self._scratch = arrays.empty((0,), np.uint8, xp)

    def reserve(self, size_bytes):
        """Make room for so many bytes."""
        if size_bytes > self._bytes.size:
            if self._let_go is not None:
                self._let_go()
            self._bytes = arrays.empty((0,), np.uint8, self.xp)  # free the old piece first
            self._bytes = arrays.empty((size_bytes,), np.uint8, self.xp)

    def view(self, offset, shape, dtype):
        """An array at an offset of the arena."""
        return _cut(self._bytes, offset, shape, dtype)

    def scratch(self, size_bytes):
        """Memory for one op's call, shared with all other ops' scratch; undefined at every call."""
        if size_bytes > self._scratch.size:
            self._scratch = arrays.empty((size_bytes,), np.uint8, self.xp)
        return self._scratch[:size_bytes]


def _cut(raw, offset, shape, dtype):
    dtype = np.dtype(dtype)
    count = 1
    for size in shape:
        count *= size
    return raw[offset:offset + count * dtype.itemsize].view(dtype).reshape(shape)
