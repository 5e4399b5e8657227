"""How servers learn what to keep: worker 0 tells them, in one message; a worker that wants nothing says goodbye.

Every worker sends each server one message on ``Channel.DECLARATION``: that it has declared, or that it leaves. A server
waits for all of them without a deadline, for workers may prepare at length; one that fails or stops meanwhile is seen
by those who watch (``ranks.watcher``, ``ranks.beats``) and ends the job.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.door.declaration import Declaration
from fleet_mpi.errors import PeerLost
from fleet_mpi.parameter_server import messages
from fleet_mpi.ranks import waiting
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fleet_mpi.connections.terms import Uplink
    from fleet_mpi.wire.transport import Pending, Transport


def declare(uplink: Uplink, declared: Declaration) -> None:
    """A worker's: let the servers know that it has declared; worker 0 says what."""
    words = declared.to_bytes() if uplink.worker == 0 else b""
    body = np.frombuffer(words, np.uint8)
    header = Header(Kind.DECLARE, uplink.worker, number=zlib.crc32(words), body=len(words))
    _send(uplink, [messages.message(header), *(body[start:stop] for start, stop in protocol.cuts(len(body)))])


def leave(uplink: Uplink) -> None:
    """A worker's that has declared nothing: it will not."""
    _send(uplink, [messages.message(Header(Kind.LEAVE, uplink.worker))])


def _send(uplink: Uplink, parts: list[np.ndarray]) -> None:
    sent = [(rank, uplink.transport.post_send(rank, Channel.DECLARATION, part))
            for rank in uplink.servers for part in parts]
    for rank, pending in sent:
        def takes_not(rank: int = rank) -> str:
            return f"{uplink.name_of(rank)} does not take what this worker declares"
        waiting.wait_until(pending.done, takes_not, uplink.transport.progress)


def await_declaration(transport: Transport, workers: Iterable[int],
                      name_of: Callable[[int], str] = str) -> Declaration | None:
    """A server's: what the workers, by their ranks, want it to keep; None where all have left."""
    coming = [_Coming(transport, rank, name_of(rank)) for rank in workers]
    waiting.poll(lambda: all([one.is_over() for one in coming]), transport.progress)
    left = [one.name for one in coming if one.declared is None]
    if left and len(left) < len(coming):
        raise PeerLost(f"{', '.join(left)} left before the first use of what the workers declared: all workers must "
                       f"come to it")
    return None if left else Declaration.from_bytes(coming[0].declared or b"", coming[0].name)


class _Coming:
    """What one worker says: a header, and a body if it has one."""

    def __init__(self, transport: Transport, rank: int, name: str) -> None:
        self.transport, self.rank, self.name = transport, rank, name
        self.declared: bytes | None = None
        self._buffer = transport.inbox(HEADER_BYTES)
        self._head: Pending | None = transport.post_receive(rank, Channel.DECLARATION, self._buffer)
        self._body: list[Pending] = []
        self._content = np.empty(0, np.uint8)
        self._sum = 0

    def is_over(self) -> bool:
        """Whether all of it is here."""
        if self._head is not None and self._head.done():
            self._read_head(Header.unpack(self._buffer, self._head.received, self.name))
            self._head = None
        if self._head is None and self._body and all(pending.done() for pending in self._body):
            self._body = []
            self.declared = self._content.tobytes()
            if zlib.crc32(self.declared) != self._sum:
                raise PeerLost(f"{self.name} declared something that was damaged on its way")
        return self._head is None and not self._body

    def _read_head(self, header: Header) -> None:
        if header.kind == Kind.LEAVE:
            return
        if header.kind != Kind.DECLARE:
            raise PeerLost(f"{self.name} sent {header.kind.name} before it declared anything")
        self.declared, self._sum = b"", header.number
        self._content = messages.room_for(header.body, self.name)
        self._body = [self.transport.post_receive(self.rank, Channel.DECLARATION, self._content[start:stop])
                      for start, stop in protocol.cuts(header.body)]
