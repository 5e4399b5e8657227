"""All-reduce in rank order for arrays on devices: the sums are made there, with the bits of ``exact`` on the host.

Every rank owns a share of an array. The others send it their parts of the share, straight from device memory or through
pinned memory; one kernel adds the parts up in rank order; the sum goes back to all. Copies and sums have a stream of
their own, beside the computing. Works over any transport of ``wire``; nothing here waits.

Between two ranks messages meet receives in the order of both, so a block never takes a step before the block that was
started before it has taken the same one, on any rank.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.arrays import event_of, pinned_like
from fleet_mpi.collective.staging import Staged, new_stream
from fleet_mpi.kernels.reference.rank_sums import sum_of_half_ranks, sum_of_ranks
from fleet_mpi.ranks.channels import Channel

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from fleet_mpi.arrays import Array
    from fleet_mpi.collective.reducer import Reduction
    from fleet_mpi.wire.transport import Pending, Transport

    Messages = list[tuple[int, Pending]]   # with the rank of the other side

LARGEST = 1 << 28  # bytes of a block: what is beyond begins while the one before is on its way


class Buffers(NamedTuple):
    """Memory of one block: the parts of all ranks on the device, and, where MPI is not aware, the pinned wires."""

    parts: Array
    wire_of_parts: np.ndarray | None
    wire: np.ndarray | None


class DeviceExactAllReduce:
    """Sums arrays of ``xp`` over some ranks of a transport; all must start the same arrays in the same order."""

    def __init__(self, transport: Transport, ranks: Iterable[int], xp: ModuleType, is_aware: bool) -> None:
        self.transport, self.ranks, self.xp, self.is_aware = transport, list(ranks), xp, is_aware
        self.me = self.ranks.index(transport.rank)
        self.stream = new_stream(xp)
        self.under_way: deque[_Block] = deque()
        self.unused: dict[tuple[int, np.dtype], list[Buffers]] = {}

    def start(self, array: Array) -> Reduction:
        """Begin to replace a contiguous array, on every rank, by the sum; returns a Reduction to ``advance``."""
        flat, length = array.reshape(-1), max(1, LARGEST // array.itemsize)
        blocks = [_Block(self, flat[first:first + length]) for first in range(0, len(flat), length)]
        # Only what was computed so far is waited for; what comes is computed meanwhile. New buffers are made before:
        # their memory may have been something else's that the device still works on.
        self.stream.wait_event(event_of(self.xp, self.xp.cuda.get_current_stream()))
        for block in blocks:
            block.begin()
        self.under_way.extend(blocks)
        return _Reduction(self, blocks)

    def advance(self) -> bool:
        """Do what can be done now, for all arrays; returns whether anything was."""
        happened, limit = False, len(STEPS)
        for block in self.under_way:
            happened = block.advance(limit) or happened
            limit = block.taken
        while self.under_way and self.under_way[0].is_over():
            self.under_way.popleft()
        return happened

    def take_buffers(self, array: Array) -> Buffers:
        """Memory for a block like this one: used before, or new."""
        unused = self.unused.setdefault((len(array), array.dtype), [])
        if unused:
            return unused.pop()
        mine = self.share(self.me, len(array))
        parts = arrays.empty((len(self.ranks), mine.stop - mine.start), array.dtype, self.xp)
        return Buffers(parts, None, None) if self.is_aware else Buffers(parts, pinned_like(parts), pinned_like(array))

    def share(self, number: int, length: int) -> slice:
        """Where a rank's share of so many elements lies; those of the last ranks may be shorter, or empty."""
        longest = -(-length // len(self.ranks))
        return slice(min(number * longest, length), min((number + 1) * longest, length))


class _Reduction:
    """One array: as many blocks as it was cut into."""

    def __init__(self, owner: DeviceExactAllReduce, blocks: list[_Block]) -> None:
        self.owner, self.blocks, self.is_followed = owner, blocks, False

    def advance(self) -> bool:
        """Do what can be done now; returns whether anything was."""
        return self.owner.advance()

    def is_over(self) -> bool:
        """Whether the array is the sum for all that is computed from now on; the device may still copy it."""
        if self.is_followed or not all(block.is_over() for block in self.blocks):
            return self.is_followed
        for block in self.blocks:
            block.whole.follow()
        self.is_followed = True
        return True

    def waits_for(self) -> list[int]:
        """The ranks that have not done their part; none while only this rank's device is awaited."""
        return sorted({rank for block in self.blocks for rank in block.waits_for()})


class _Block:
    """A piece of an array; ``taken`` are the steps behind it."""

    def __init__(self, owner: DeviceExactAllReduce, array: Array) -> None:
        self.owner, self.array, self.taken = owner, array, 0
        self.buffers = owner.take_buffers(array)
        self.receiving: Messages = []
        self.sending: Messages = []
        self.whole = Staged(array, owner.is_aware, owner.stream, self.buffers.wire)
        self.parts = Staged(self.buffers.parts, owner.is_aware, owner.stream, self.buffers.wire_of_parts)

    def begin(self) -> None:
        """Let what was computed so far go to the wire."""
        with self.owner.stream:
            self.whole.begin()

    def advance(self, limit: int) -> bool:
        """Take the steps that can be taken, but no more than ``limit`` in all; returns whether any was."""
        before = self.taken
        while self.taken < limit and STEPS[self.taken](self):
            self.taken += 1
        return self.taken > before

    def is_over(self) -> bool:
        """Whether all steps are taken."""
        return self.taken == len(STEPS)

    def waits_for(self) -> set[int]:
        """Whose messages have not come, or who has not taken this one's."""
        return {rank for rank, _ in _left(self.receiving) or _left(self.sending)}

    def exchange_parts(self) -> bool:
        """Once the values are on the wire: each owner gets this rank's part of its share."""
        if not self.whole.is_ready():
            return False
        for number in self._others():
            self._receive(number, Channel.PART, self.parts.on_wire[number])
            self._send(number, Channel.PART, self.whole.on_wire[self._share(number)])
        return True

    def add_up(self) -> bool:
        """Once all parts of the own share are here: one kernel adds them up, and the sum goes to the wire."""
        if _left(self.receiving):
            return False
        owner, mine = self.owner, self._share(self.owner.me)
        own, parts = self.array[mine], self.buffers.parts
        self.parts.land()
        with owner.stream:
            parts[owner.me] = own
            (sum_of_half_ranks if own.dtype == np.float16 else sum_of_ranks)(parts, own)
            self.sum = Staged(own, owner.is_aware, owner.stream, None if owner.is_aware else self.whole.on_wire[mine])
            self.sum.begin()
        return True

    def exchange_sums(self) -> bool:
        """Once the sum is on the wire and the parts are gone, whose places the others' sums take: each rank gets all
        shares."""
        if _left(self.sending) or not self.sum.is_ready():
            return False
        for number in self._others():
            self._receive(number, Channel.SUM, self.whole.on_wire[self._share(number)])
            self._send(number, Channel.SUM, self.whole.on_wire[self._share(self.owner.me)])
        return True

    def land(self) -> bool:
        """Once all sums are here: the array gets them."""
        if _left(self.receiving):
            return False
        self.whole.land()
        return True

    def end(self) -> bool:
        """Once the own sum is taken by all: the buffers are free, for what the same stream does next."""
        if _left(self.sending):
            return False
        self.owner.unused[len(self.array), self.array.dtype].append(self.buffers)
        return True

    def _others(self) -> list[int]:
        return [number for number in range(len(self.owner.ranks)) if number != self.owner.me]

    def _share(self, number: int) -> slice:
        return self.owner.share(number, len(self.array))

    def _receive(self, number: int, channel: Channel, array: Array) -> None:
        if len(array):
            rank = self.owner.ranks[number]
            self.receiving.append((rank, self.owner.transport.post_receive(rank, channel, array.view(np.uint8))))

    def _send(self, number: int, channel: Channel, array: Array) -> None:
        if len(array):
            rank = self.owner.ranks[number]
            self.sending.append((rank, self.owner.transport.post_send(rank, channel, array.view(np.uint8))))


# In the order in which a block takes them.
STEPS = (_Block.exchange_parts, _Block.add_up, _Block.exchange_sums, _Block.land, _Block.end)


def _left(pending: Messages) -> Messages:
    """Drop what is over; returns what is left."""
    pending[:] = [one for one in pending if not one[1].done()]
    return pending
