"""A network inside one process: queues between numbered ranks, for tests and for a server within its only worker.

Ranks may be threads, or one thread may play them all: ``on_wait`` is called while somebody waits, so that an
embedded server can do its part. Messages can be dropped or held back on request.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

from fleet_mpi.wire.transport import Pending, Transport, too_long

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    Key = tuple[int, int, int]   # source, target, channel


class Network:
    """The queues of all ranks. ``fault(source, target, channel, array)`` may return "drop" or "hold".

    Held messages arrive, in their order, when ``release`` is called.
    """

    def __init__(self, fault: Callable[[int, int, int, np.ndarray], str | None] | None = None) -> None:
        self.fault = fault
        self.lock = threading.RLock()
        self.arrived: defaultdict[Key, deque[np.ndarray]] = defaultdict(deque)
        self.wanted: defaultdict[Key, deque[_Receiving]] = defaultdict(deque)
        self.held: list[tuple[Key, np.ndarray]] = []
        self.sent: defaultdict[Key, int] = defaultdict(int)  # messages, for tests that count

    def transport(self, rank: int) -> Loopback:
        """The transport of one rank."""
        return Loopback(self, rank)

    def send(self, source: int, target: int, channel: int, array: np.ndarray) -> None:
        """Take a message; it is copied, so that the sender may go on at once."""
        with self.lock:
            key = (source, target, int(channel))
            self.sent[key] += 1
            fate = self.fault(source, target, channel, array) if self.fault is not None else None
            if fate == "hold":
                self.held.append((key, array.copy()))
            elif fate != "drop":
                self._deliver(key, array)

    def release(self) -> None:
        """Let all held messages arrive."""
        with self.lock:
            held, self.held = self.held, []
            for key, array in held:
                self._deliver(key, array)

    def _deliver(self, key: Key, array: np.ndarray) -> None:
        if self.wanted[key]:
            self.wanted[key].popleft().take(array)
        else:
            self.arrived[key].append(array.copy())

    def receive(self, source: int, target: int, channel: int, array: np.ndarray) -> Pending:
        """Want a message; it may be there already."""
        with self.lock:
            key, pending = (source, target, int(channel)), _Receiving(array, source)
            if self.arrived[key]:
                pending.take(self.arrived[key].popleft())
            else:
                self.wanted[key].append(pending)
            return pending

    def forget(self, pending: Pending) -> None:
        """Take a receive back."""
        with self.lock:
            for queue in self.wanted.values():
                if pending in queue:
                    queue.remove(pending)  # type: ignore[arg-type]  # found there: one of these


class _Receiving(Pending):
    """A receive; over when a message was copied in."""

    __slots__ = ("array", "source", "_received")

    def __init__(self, array: np.ndarray, source: int) -> None:
        self.array, self.source = array, source
        self._received: Any = None   # a number once the message is there

    def take(self, message: np.ndarray) -> None:
        """Copy the message in, as much as there is room for."""
        fitting = min(len(message), len(self.array))
        self.array[:fitting] = message[:fitting]
        self._received = len(message)

    def done(self) -> bool:
        """Whether the message is there."""
        if self._received is not None and self._received > len(self.array):
            raise too_long(f"rank {self.source}", len(self.array))
        return self._received is not None

    @property
    def received(self) -> int:
        """Its length."""
        return self._received


class _Sent(Pending):
    """A send is over at once."""

    __slots__ = ()

    def done(self) -> bool:
        """Yes."""
        return True


class Loopback(Transport):
    """One rank's end of a Network."""

    def __init__(self, network: Network, rank: int, on_wait: Callable[[], bool] | None = None) -> None:
        self.network, self.rank, self.on_wait = network, rank, on_wait

    def post_send(self, peer: int, channel: int, array: np.ndarray) -> Pending:
        """Copy the message to the peer."""
        self.network.send(self.rank, peer, channel, array)
        return _Sent()

    def post_receive(self, peer: int, channel: int, array: np.ndarray) -> Pending:
        """Wait for a message of the peer."""
        return self.network.receive(peer, self.rank, channel, array)

    def withdraw(self, pending: Pending) -> None:
        """Want it no more."""
        self.network.forget(pending)

    def progress(self) -> bool:
        """Let an embedded server do its part; ``on_wait`` says whether it did anything."""
        return bool(self.on_wait is not None and self.on_wait())
