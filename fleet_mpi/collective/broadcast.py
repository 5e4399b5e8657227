"""One rank's array to all others, along a tree: each rank passes on what it has, piece by piece."""


import numpy as np

from fleet_mpi.ranks.channels import Channel

PIECE = 1 << 20


class Broadcast:
    """An array of rank ``ranks[0]`` on its way; on the others it is overwritten. Nothing here waits."""

    def __init__(self, transport, ranks, array):
        self.transport, me = transport, ranks.index(transport.rank)
        flat = array.reshape(-1).view(np.uint8)
        self.pieces = [flat[start:start + PIECE] for start in range(0, len(flat), PIECE)]
        self.children = [ranks[child] for child in children(me, len(ranks))]
        self.parent = ranks[(me - 1) // 2] if me else None
        self.coming = [] if self.parent is None else [transport.post_receive(self.parent, Channel.VALUES, piece)
                                                      for piece in self.pieces]
        self.passed, self.sending = 0, []

    def advance(self):
        """Pass on what has come; returns whether anything was done."""
        before = self.passed, len(self.sending)
        while self.passed < len(self.pieces) and (not self.coming or self.coming[self.passed].done()):
            for child in self.children:
                self.sending.append((child, self.transport.post_send(child, Channel.VALUES, self.pieces[self.passed])))
            self.passed += 1
        self.sending = [one for one in self.sending if not one[1].done()]
        return (self.passed, len(self.sending)) != before

    def is_over(self):
        """Whether the array is there and was passed on."""
        return self.passed == len(self.pieces) and not self.sending

    def waits_for(self):
        """The ranks that have not done their part."""
        return [self.parent] if self.passed < len(self.pieces) else sorted({child for child, _ in self.sending})


def children(number, count):
    """Whom a rank passes things on to: a binary tree."""
    return [child for child in (2 * number + 1, 2 * number + 2) if child < count]
