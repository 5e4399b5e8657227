"""A server's end of the way from one worker: its requests, one after the other, and what a push holds."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.parameter_server import messages
from fleet_mpi.parameter_server.preallocated import Reply
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fleet_mpi.parameter_server.server import Server
    from fleet_mpi.parameter_server.tables.base import Contribution, TableByRows
    from fleet_mpi.wire.transport import Pending

    TableRows = list[tuple[TableByRows, int, int]]   # a table, how many rows, in how many bytes

# How many pieces of a body are taken at a time: MPI copies all that is expected and there before it returns, and
# meanwhile nothing is updated or answered.
WINDOW = 2


class Push:
    """The gradients of one worker's step: ``parts`` are what each table reads of it, the dense one's first."""

    def __init__(self, inbox: Inbox, header: Header, parts: list[Contribution], rates: np.ndarray) -> None:
        self.inbox, self.worker, self.header = inbox, inbox.index, header
        self.parts, self.rates = parts, rates

    @property
    def image(self) -> np.ndarray:
        """The dense gradients: bytes, which may fill piece by piece."""
        return self.parts[0].image

    @property
    def wants_values(self) -> bool:
        """Whether the worker asked for the parameters in return."""
        return self.header.kind == Kind.PUSH_PULL


class Inbox:
    """Receives one worker's requests, one after the other: the next one when this one is answered."""

    def __init__(self, server: Server, rank: int, index: int, room: int) -> None:
        self.server, self.rank, self.index, self.name = server, rank, index, server.name_of(rank)
        self.buffer = server.transport.inbox(room)
        self.reply = Reply(server.index, server.image.nbytes)
        self.small_push: Any = None   # (parts, rates) of every push that is one message without rows
        self.busy: list[Pending] = []     # sends that still read this inbox's arrays
        self.body: list[Pending] = []
        self._for_rows = np.empty(0, np.uint8)
        self.targets: Sequence[np.ndarray] = ()
        self.on_part: Any = None   # called with the number of each part of the body that is full
        self.pending: Pending | None = None
        self.arm()

    def arm(self) -> None:
        """Wait for the next request."""
        self.on_part = None
        self.pending = self.server.transport.post_receive(self.rank, Channel.REQUEST, self.buffer)

    def release(self, sends: Iterable[Pending] = ()) -> None:
        """This request's arrays are free once ``sends`` are over: take the next one then."""
        self.busy = list(sends)
        self.pending, self.on_part = None, None
        if not self.busy:
            self.arm()

    def receive_body(self, targets: Sequence[np.ndarray], on_part: Callable[[int], Any]) -> None:
        """Receive a body into these arrays; ``on_part(number)`` is called as each is full, in order."""
        self.pending, self.on_part, self.arrived = None, on_part, 0
        self.targets, self.body = targets, []
        for _ in range(min(WINDOW, len(targets))):
            self._post_next()

    def receive_whole(self, body: np.ndarray, then: Callable[[], Any]) -> None:
        """Receive a body that is of use as a whole only."""
        targets = [body[start:stop] for start, stop in protocol.cuts(len(body), self.server.largest)]
        last = len(targets) - 1

        def on_part(part: int) -> None:
            if part == last:
                then()
        self.receive_body(targets, on_part)

    def _post_next(self) -> None:
        self.body.append(self.server.transport.post_receive(self.rank, Channel.REQUEST_BODY,
                                                            self.targets[len(self.body)]))

    def advance(self) -> bool:
        """Do what is ready; returns whether anything was."""
        if self.pending is not None:
            if not self.pending.done():
                return False
            received, self.pending = self.pending.received, None
            self.server.take(self, Header.unpack(self.buffer, received, self.name))
            return True
        if self.on_part is not None and self.arrived < len(self.targets):
            return self._take_parts()
        if self.busy and all(one.done() for one in self.busy):
            self.busy = []
            self.arm()
            return True
        return False

    def _take_parts(self) -> bool:
        """Take all parts of the body that are there; returns whether any was."""
        first, on_part, targets, body = self.arrived, self.on_part, self.targets, self.body
        while self.arrived < len(targets) and body[self.arrived].done():
            if len(body) < len(targets):
                self._post_next()
            self.arrived += 1
            on_part(self.arrived - 1)   # after the last one this inbox may take its next request
            if self.body is not body:
                return True
        return self.arrived > first

    def inline(self, header: Header) -> np.ndarray:
        """The inline part of the request."""
        return self.buffer[HEADER_BYTES:HEADER_BYTES + header.inline]

    def read_push(self, header: Header) -> None:
        """Hand a push of any length to the mode, once all of it is there and before that in pieces."""
        server, inline = self.server, self.inline(header)
        rates, counts = messages.read_prefix(inline, len(server.description.rates), len(server.row_tables), self.name)
        rows = [(table, int(count), table.push_bytes(int(count))) for table, count in zip(server.row_tables, counts)]
        prefix = messages.prefix_bytes(len(server.description.rates), len(rows))
        dense, by_rows = server.image.nbytes, sum(size for _, _, size in rows)
        messages.check_length(header, prefix, dense + by_rows, f"{self.name} sent gradients of")
        if header.body:
            push = Push(self, header, [server.dense.read(self.image_buffer, 0)], rates)
            self._receive_push(push, rows, self.row_buffer(by_rows))
            return
        push = Push(self, header, [server.dense.read(inline[prefix:prefix + dense], 0)], rates)
        _read_rows(push, rows, inline[prefix + dense:])
        server.mode.on_push(push)

    def _receive_push(self, push: Push, rows: TableRows, row_body: np.ndarray) -> None:
        """Receive the image in its pieces (each perhaps cut further), then the rows."""
        mode, (targets, ends) = self.server.mode, self.image_parts
        targets = targets + [row_body[start:stop]
                             for start, stop in protocol.cuts(len(row_body), self.server.largest)]

        def on_part(part: int) -> None:
            is_last = part == len(targets) - 1
            if is_last:
                _read_rows(push, rows, row_body)
            if part in ends:
                mode.on_piece(push, ends[part])
            if is_last:
                mode.on_push(push)
        self.receive_body(targets, on_part)

    @functools.cached_property
    def image_parts(self) -> tuple[list[np.ndarray], dict[int, int]]:
        """The parts of the gradients' image that messages fill, and {part: the piece that is full with it}."""
        server, image = self.server, self.image_buffer
        targets: list[np.ndarray] = []
        ends: dict[int, int] = {}
        for number, piece in enumerate(server.image.pieces):
            targets += [image[piece.start + start:piece.start + stop]
                        for start, stop in protocol.cuts(piece.stop - piece.start, server.largest)]
            ends[len(targets) - 1] = number
        return targets, ends

    def row_buffer(self, nbytes: int) -> np.ndarray:
        """Where the rows of this request, or of its answer, go: the front of a buffer that only grows.

        Those of the next one go there too. Fresh memory would cost a page fault for every 4 KiB.
        """
        if len(self._for_rows) < nbytes:
            self._for_rows = messages.room_for(nbytes, self.name)
        return self._for_rows[:nbytes]

    @functools.cached_property
    def image_buffer(self) -> np.ndarray:
        """Where gradients too long for one message go."""
        return arrays.empty(self.server.image.nbytes, np.uint8)


def _read_rows(push: Push, rows: TableRows, body: np.ndarray) -> None:
    """Add what each table reads of these bytes; ``rows`` are (table, count, bytes)."""
    start = 0
    for table, count, size in rows:
        push.parts.append(table.read(body[start:start + size], count))
        start += size
