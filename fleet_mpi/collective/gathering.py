"""Every rank's array to every other rank: for what is short, or different on each, like row gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.ranks.channels import Channel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet_mpi.wire.transport import Transport

LARGEST = 1 << 30  # bytes of a message: MPI counts to 2^31


class Gathering:
    """``rows[rank]`` is this rank's array, or the place for that of another one. Nothing here waits."""

    def __init__(self, transport: Transport, ranks: Sequence[int], rows: Sequence[np.ndarray]) -> None:
        me = transport.rank
        self.pending = []
        for rank in ranks:
            for piece in _pieces(rows[rank]) if rank != me else ():
                self.pending.append((rank, transport.post_receive(rank, Channel.GATHERED, piece)))
        for rank in ranks:
            for piece in _pieces(rows[me]) if rank != me else ():
                self.pending.append((rank, transport.post_send(rank, Channel.GATHERED, piece)))

    def advance(self) -> bool:
        """See what has come; returns whether anything has."""
        before = len(self.pending)
        self.pending = [one for one in self.pending if not one[1].done()]
        return len(self.pending) < before

    def is_over(self) -> bool:
        """Whether all is there, and was taken."""
        return not self.pending

    def waits_for(self) -> list[int]:
        """The ranks that have not done their part."""
        return sorted({rank for rank, _ in self.pending})


def _pieces(array: np.ndarray) -> list[np.ndarray]:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return [flat[start:start + LARGEST] for start in range(0, len(flat), LARGEST)]
