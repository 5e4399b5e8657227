"""The seam between the protocol and a network: what every transport does.

A transport posts sends and receives of byte arrays and never waits. Between two ranks messages of one channel
arrive in the order they were sent and meet the receives in the order these were posted. A new network is one
file with these two methods; ``tests/unit/wire/test_transports.py`` runs over all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.errors import PeerLost

if TYPE_CHECKING:
    from fleet_mpi.arrays import Array
    from fleet_mpi.ranks.channels import Channel


class Pending:
    """A send or receive that may not be over yet. The array must stay untouched until ``done``.

    One that is dropped before, by an exception, harms nobody: the transport sees to its array.
    """

    __slots__ = ()

    def done(self) -> bool:
        """Whether it is over; True again at every later call. PeerLost where what came was too long for the array."""
        raise NotImplementedError(type(self).__name__)

    @property
    def received(self) -> int:
        """After a receive is done: how many bytes came."""
        raise NotImplementedError(type(self).__name__)


class Transport:
    """Moves bytes between this rank and its peers, which are numbered as the world's ranks."""

    rank = 0

    def post_send(self, peer: int, channel: Channel, array: Array) -> Pending:
        """Start sending a contiguous uint8 array; returns a Pending."""
        raise NotImplementedError(type(self).__name__)

    def post_receive(self, peer: int, channel: Channel, array: Array) -> Pending:
        """Start receiving into a contiguous uint8 array that is at least as long; returns a Pending."""
        raise NotImplementedError(type(self).__name__)

    def inbox(self, nbytes: int) -> np.ndarray:
        """An array for messages of at most so many bytes, where only the sender knows how long they are."""
        return arrays.empty(nbytes, np.uint8)

    def withdraw(self, pending: Pending) -> None:
        """Give up a receive that nothing will come for."""

    def progress(self) -> bool:
        """Advance pending transfers; called repeatedly while a caller waits. Returns whether anything advanced."""
        return False


def too_long(source: str, nbytes: int) -> PeerLost:
    """The error of a receive whose message was longer than its array."""
    return PeerLost(f"{source} sent a message longer than the {nbytes} bytes that are expected of it at most: do both "
                    f"run the same program?")
