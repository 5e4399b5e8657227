"""A transport of one's own: the smallest there is, to show what the seam asks for."""

import threading
from collections import defaultdict, deque

from fleet_mpi.wire.transport import Pending, Transport, too_long


class Pigeonholes:
    """What all ranks share: messages that came and receives that wait, by (source, target, channel)."""

    def __init__(self):
        self.lock, self.came, self.wanted = threading.Lock(), defaultdict(deque), defaultdict(deque)

    def match(self, key):
        """Hand messages to receives, in order."""
        with self.lock:
            while self.came[key] and self.wanted[key]:
                self.wanted[key].popleft().take(self.came[key].popleft())


class Message(Pending):
    """A send, over at once, or a receive."""

    def __init__(self, array=None, received=None):
        self.array, self.length, self.source = array, received, None

    def take(self, message):
        """Copy what fits."""
        fitting = min(len(message), len(self.array))
        self.array[:fitting] = message[:fitting]
        self.length = len(message)

    def done(self):
        """Whether it is over."""
        if self.array is not None and self.length is not None and self.length > len(self.array):
            raise too_long(f"rank {self.source}", len(self.array))
        return self.length is not None

    @property
    def received(self):
        """How many bytes came."""
        return self.length


class ToyTransport(Transport):
    """One rank's pigeonholes."""

    def __init__(self, holes, rank, on_wait=None):
        self.holes, self.rank, self.on_wait = holes, rank, on_wait

    def post_send(self, peer, channel, array):
        """Put a copy there."""
        key = self.rank, peer, int(channel)
        self.holes.came[key].append(array.copy())
        self.holes.match(key)
        return Message(received=0)

    def post_receive(self, peer, channel, array):
        """Want the next one."""
        key, made = (peer, self.rank, int(channel)), Message(array)
        made.source = peer
        self.holes.wanted[key].append(made)
        self.holes.match(key)
        return made

    def withdraw(self, pending):
        """Want it no more."""
        for queue in self.holes.wanted.values():
            if pending in queue:
                queue.remove(pending)

    def progress(self):
        """Let servers of the same process do their part."""
        return bool(self.on_wait is not None and self.on_wait())
