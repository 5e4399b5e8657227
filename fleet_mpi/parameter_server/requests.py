"""What a worker's request is made of: a ticket with one part for each server, its sends and receives, and buffers.

Several requests may be under way, each with buffers of its own, which later requests use again. Waiting is the client's
business: nothing here waits.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.parameter_server import messages
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet_mpi.parameter_server.client import Client
    from fleet_mpi.parameter_server.flat import Piece, ServerImage
    from fleet_mpi.parameter_server.preallocated import Request
    from fleet_mpi.wire.transport import Pending

NOTHING = np.empty(0, np.uint8)

AnyPart: TypeAlias = "Part | Request"   # what a client waits for


class SourceOfRows(Protocol):
    """Where a worker's rows come from: the servers, or copies of its own."""

    def pull(self, wanted: Mapping[int, np.ndarray],
             into: Mapping[int, Sequence[np.ndarray]] | None = None) -> dict[int, Any]:
        """{table number: rows in the order of its ids}; ``into`` may give {table number: [arrays to fill]}."""


class Ticket(NamedTuple):
    """A request to every server; ``into`` is the flat array that the parameters come to."""

    kind: Kind
    step: int
    into: np.ndarray
    parts: list[AnyPart]


class Link:
    """What a client keeps per server: its image, and buffers that no request uses at the moment."""

    def __init__(self, client: Client, rank: int, index: int, image: ServerImage, room: int) -> None:
        self.client, self.rank, self.name, self.index = client, rank, client.name_of(rank), index
        self.image, self.room, self.inbox = image, room, client.transport.inbox
        self.asked: list[AnyPart] = []      # parts whose answer has not come
        self.unused: dict[int, list[np.ndarray]] = defaultdict(list)   # by length
        self.unused_for_rows: list[np.ndarray] = []   # of any length
        self.requests: list[Request] = []   # preallocated ones that are not in use
        # Of the last two flat arrays: the gradients and the parameters.
        self._places: tuple[tuple[np.ndarray | None, list[np.ndarray | None]], ...] = (None, []), (None, [])

    def places_in(self, flat: np.ndarray) -> list[np.ndarray | None]:
        """Where each piece lies in a flat array; None for those that must be gathered."""
        for known, places in self._places:
            if known is flat:
                return places
        places = [piece.in_place(flat) for piece in self.image.pieces]
        self._places = (flat, places), self._places[0]
        return places


class Part:
    """One server's part of a request: what is sent and expected, and the buffers that takes."""

    def __init__(self, link: Link) -> None:
        self.link, self.client = link, link.client
        self.sends: list[Pending] = []
        self.taken: list[np.ndarray] = []
        self.taken_for_rows: list[np.ndarray] = []
        self.reply: Any = None
        self.pending: Any = None
        # What is to come, the Piece that it is (None where it is none of an image), its staging buffer if any.
        self.body: list[tuple[Pending, Any, np.ndarray | None]] = []

    def buffer(self, nbytes: int) -> np.ndarray:
        """A buffer for as long as this part lasts."""
        unused = self.link.unused[nbytes]
        made = unused.pop() if unused else self.link.inbox(nbytes) if nbytes == self.link.room else arrays.empty(
            nbytes, np.uint8)
        self.taken.append(made)
        return made

    def row_buffer(self, nbytes: int) -> np.ndarray:
        """The same for rows, of which every request has another number: the front of a buffer that only grows.

        Fresh memory would cost a page fault for every 4 KiB.
        """
        unused = self.link.unused_for_rows
        made = unused.pop() if unused else NOTHING
        if len(made) < nbytes:
            made = arrays.empty(nbytes, np.uint8)
        self.taken_for_rows.append(made)
        return made[:nbytes]

    def give_back(self) -> None:
        """Let other requests have the buffers."""
        for one in self.taken:
            self.link.unused[len(one)].append(one)
        self.link.unused_for_rows += self.taken_for_rows
        self.taken, self.taken_for_rows = [], []

    # ------------------------------------------------------------------ sending

    def send(self, array: np.ndarray, channel: Channel = Channel.REQUEST) -> None:
        """Post one message."""
        self.sends.append(self.client.transport.post_send(self.link.rank, channel, array))

    def send_body(self, body: np.ndarray) -> None:
        """Post an array of the request's body, cut if it is longer than a message may be."""
        if 0 < len(body) <= self.client.largest:
            self.send(body, Channel.REQUEST_BODY)
            return
        for start, stop in protocol.cuts(len(body), self.client.largest):
            self.send(body[start:stop], Channel.REQUEST_BODY)

    def send_push(self, header: Header, rates: np.ndarray, rows: Sequence[tuple[np.ndarray, np.ndarray]],
                  grads: np.ndarray) -> None:
        """Send gradients: those of the flat array, and (local ids, values) of each table that has rows."""
        image, places = self.link.image, self.link.places_in(grads)
        by_rows = [array for one in rows for array in one]
        row_bytes = messages.joined_bytes(by_rows)
        prefix = messages.prefix_bytes(len(rates), len(rows))
        message = self.buffer(self.link.room)
        inline = message[HEADER_BYTES:]
        set_rates, counts = messages.split_prefix(inline, len(rates), len(rows))
        set_rates[...] = rates
        counts[...] = [len(ids) for ids, _ in rows]
        if messages.is_inline(image.nbytes, row_bytes):
            for piece in image.pieces:
                piece.gather(grads, inline[prefix:])
            end = prefix + image.nbytes + row_bytes
            messages.joined(by_rows, inline[prefix + image.nbytes:end])
            self.send_front(message, header._replace(inline=end))
            return
        self.send_front(message, header._replace(inline=prefix, body=image.nbytes + row_bytes))
        for piece, place in zip(image.pieces, places):
            self.send_body(self._gathered(piece, grads) if place is None else place)
        self.send_body(messages.joined(by_rows, self.row_buffer(row_bytes)))

    def send_front(self, message: np.ndarray, header: Header) -> None:
        """Send a message that has its inline part already."""
        header.pack_into(message)
        self.send(message[:HEADER_BYTES + header.inline])

    def _gathered(self, piece: Piece, grads: np.ndarray) -> np.ndarray:
        """A piece of the gradients in a buffer."""
        found = self.buffer(piece.stop - piece.start)
        piece.gather(grads, found)
        return found

    def is_sent(self) -> bool:
        """Whether nothing is read any more."""
        self.sends = [one for one in self.sends if not one.done()]
        return not self.sends

    # ------------------------------------------------------------------ receiving

    def expect(self) -> Part:
        """Post the receive of the answer; returns itself."""
        link = self.link
        self.reply = self.buffer(link.room)
        self.pending = self.client.transport.post_receive(link.rank, Channel.REPLY, self.reply)
        link.asked = [one for one in link.asked if not one.pending.done()] + [self]
        return self

    def expect_body(self, place: np.ndarray, piece: Piece | None = None, staged: np.ndarray | None = None) -> None:
        """Post the receives of an array of the answer's body."""
        for start, stop in protocol.cuts(len(place), self.client.largest):
            self.body.append((self.client.transport.post_receive(self.link.rank, Channel.REPLY_BODY,
                                                                 place[start:stop]), piece, staged))

    def expect_values(self, into: np.ndarray) -> Part:
        """Post the receives of an answer with parameters: long pieces go straight to where they belong."""
        self.expect()
        if not messages.is_inline(self.link.image.nbytes):
            for piece, place in zip(self.link.image.pieces, self.link.places_in(into)):
                if place is not None:
                    self.expect_body(place, piece)
                else:
                    staged = self.buffer(piece.stop - piece.start)
                    self.expect_body(staged, piece, staged)
        return self

    def scatter(self, into: np.ndarray) -> None:
        """Copy parameters that came within the answer to a flat array."""
        for piece in self.link.image.pieces:
            piece.scatter(self.reply[HEADER_BYTES:], into)

    def is_answered(self) -> bool:
        """Whether all that is expected is there."""
        return self.pending.done() and all(pending.done() for pending, _, _ in self.body)
