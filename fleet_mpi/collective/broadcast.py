"""One rank's array to all others, along a tree: each rank passes on what it has, piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.ranks.channels import Channel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet_mpi.wire.transport import Pending, Transport

PIECE = 1 << 20


class Broadcast:
    """An array of rank ``ranks[0]`` on its way; on the others it is overwritten. Nothing here waits."""

    def __init__(self, transport: Transport, ranks: Sequence[int], array: np.ndarray) -> None:
        self.transport, me = transport, ranks.index(transport.rank)
        flat = array.reshape(-1).view(np.uint8)
        self.pieces = [flat[start:start + PIECE] for start in range(0, len(flat), PIECE)]
        self.children = [ranks[child] for child in children(me, len(ranks))]
        self.parent = ranks[(me - 1) // 2] if me else None
        self.coming = [] if self.parent is None else [transport.post_receive(self.parent, Channel.VALUES, piece)
                                                      for piece in self.pieces]
        self.passed = 0
        self.sending: list[tuple[int, Pending]] = []

    def advance(self) -> bool:
        """Pass on what has come; returns whether anything was done."""
        before = self.passed, len(self.sending)
        while self.passed < len(self.pieces) and (not self.coming or self.coming[self.passed].done()):
            for child in self.children:
                self.sending.append((child, self.transport.post_send(child, Channel.VALUES, self.pieces[self.passed])))
            self.passed += 1
        self.sending = [one for one in self.sending if not one[1].done()]
        return (self.passed, len(self.sending)) != before

    def is_over(self) -> bool:
        """Whether the array is there and was passed on."""
        return self.passed == len(self.pieces) and not self.sending

    def waits_for(self) -> list[int]:
        """The ranks that have not done their part."""
        if self.parent is not None and self.passed < len(self.pieces):
            return [self.parent]
        return sorted({child for child, _ in self.sending})


def children(number: int, count: int) -> list[int]:
    """Whom a rank passes things on to: a binary tree."""
    return [child for child in (2 * number + 1, 2 * number + 2) if child < count]
