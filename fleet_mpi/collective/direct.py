"""All-reduce of short arrays in rank order: every rank sends its part to all others, and adds up for itself.

One way instead of two, for more bytes: what counts for short arrays is how often one waits. Works over any transport of
``wire``; nothing here waits.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.ranks.channels import Channel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fleet_mpi.collective.reducer import Reduction
    from fleet_mpi.wire.transport import Transport


class DirectAllReduce:
    """Sums arrays over some ranks of a transport by ``add(parts, out)``; all must start the same arrays in one
    order."""

    def __init__(self, transport: Transport, ranks: Iterable[int],
                 add: Callable[[Sequence[np.ndarray], np.ndarray], None]) -> None:
        self.transport, self.ranks, self.add = transport, list(ranks), add
        self.me = self.ranks.index(transport.rank)
        self.others = [rank for rank in self.ranks if rank != transport.rank]
        self.under_way: list[_Reduction] = []
        self.unused: dict[int, list[list[np.ndarray]]] = {}  # lists of buffers, one for each rank, by length

    def start(self, array: np.ndarray) -> Reduction:
        """Begin to replace a contiguous array, on every rank, by the sum; returns a Reduction to ``advance``."""
        made = _Reduction(self, array)
        self.under_way.append(made)
        return made

    def advance(self) -> bool:
        """Do what can be done now, for all arrays; returns whether anything was."""
        return any([one.advance() for one in tuple(self.under_way)])

    def waits_for(self) -> list[int]:
        """The ranks that have not done their part, for any array."""
        return sorted({rank for one in self.under_way for rank in one.waits_for()})

    def take_buffers(self, nbytes: int) -> list[np.ndarray]:
        """Room for the parts of all: this rank's is sent from there, for its array becomes the sum."""
        unused = self.unused.setdefault(nbytes, [])
        return unused.pop() if unused else [arrays.empty(nbytes, np.uint8) for _ in self.ranks]


class _Reduction:
    """One array: over when all parts have come and are added up, and this rank's own has gone."""

    __slots__ = ("owner", "array", "buffers", "receiving", "sending", "done")

    def __init__(self, owner: DirectAllReduce, array: np.ndarray) -> None:
        self.owner, self.array, self.done = owner, array, False
        self.buffers = owner.take_buffers(array.nbytes)
        transport, own = owner.transport, self.buffers[owner.me]
        self.receiving = deque((rank, transport.post_receive(rank, Channel.WHOLE, buffer))
                               for rank, buffer in zip(owner.ranks, self.buffers) if buffer is not own)
        own[...] = array.view(np.uint8)
        self.sending = deque((rank, transport.post_send(rank, Channel.WHOLE, own)) for rank in owner.others)

    def advance(self) -> bool:
        """Do what can be done now; returns whether anything was."""
        if self.done:
            return False
        waited = len(self.receiving) + len(self.sending)
        for pending in (self.receiving, self.sending):
            while pending and pending[0][1].done():
                pending.popleft()
        if self.receiving or self.sending:
            return len(self.receiving) + len(self.sending) < waited
        self._end()
        return True

    def _end(self) -> None:
        owner, dtype = self.owner, self.array.dtype
        parts = [buffer.view(dtype) for buffer in self.buffers]
        owner.add(parts, self.array)
        owner.unused[self.array.nbytes].append(self.buffers)
        owner.under_way.remove(self)
        self.done = True

    def is_over(self) -> bool:
        """Whether the array is the sum."""
        return self.done

    def waits_for(self) -> list[int]:
        """The ranks whose parts have not come, or have not taken this one's."""
        return sorted({rank for rank, pending in (*self.receiving, *self.sending) if not pending.done()})
