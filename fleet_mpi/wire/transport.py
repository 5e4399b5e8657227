"""The seam between the protocol and a network: what every transport does.

A transport posts sends and receives of byte arrays and never waits. Between two ranks messages of one channel
arrive in the order they were sent and meet the receives in the order these were posted. A new network is one
file with these two methods; ``tests/unit/wire/test_transports.py`` runs over all of them.
"""


class Pending:
    """A send or receive that may not be over yet. The array must stay untouched until ``done``."""

    def done(self):
        """Whether it is over; True again at every later call."""
        raise NotImplementedError(type(self).__name__)

    @property
    def received(self):
        """After a receive is done: how many bytes came."""
        raise NotImplementedError(type(self).__name__)


class Transport:
    """Moves bytes between this rank and its peers, which are numbered as the world's ranks."""

    rank = 0

    def post_send(self, peer, channel, array):
        """Start sending a contiguous uint8 array; returns a Pending."""
        raise NotImplementedError(type(self).__name__)

    def post_receive(self, peer, channel, array):
        """Start receiving into a contiguous uint8 array that is at least as long; returns a Pending."""
        raise NotImplementedError(type(self).__name__)

    def withdraw(self, pending):
        """Give up a receive that nothing will come for."""

    def progress(self):
        """Let what is under way go on; called again and again while somebody waits. Returns whether anything did."""
        return False
