"""The way of small models, where every microsecond is a large part of a step: messages that are written anew.

Where all that a push has for a server is one image that fits a message, the push always has the same length and the
same places in it. A worker keeps the buffers of such requests, with the arrays that are copied to and from them; a
server knows the push by its length and finds its parts where they always are. Answers with parameters that fit a
message are written to one buffer per worker. The messages are those of ``messages``, and either side may do without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.parameter_server import messages
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet_mpi.parameter_server.flat import ServerImage
    from fleet_mpi.parameter_server.requests import Link
    from fleet_mpi.wire.transport import Transport


def serves(row_tables: int, images: Iterable[ServerImage]) -> bool:
    """Whether every push to the servers of these images has one length, and fits a message."""
    return not row_tables and all(messages.is_inline(image.nbytes) for image in images)


def push_bytes(rates: int, image: ServerImage) -> int:
    """The length of such a push, header not counted."""
    return messages.prefix_bytes(rates, 0) + image.nbytes


def places(message: np.ndarray, rates: int, image: ServerImage) -> tuple[np.ndarray, np.ndarray]:
    """(rates, image of gradients) within such a push."""
    inline = message[HEADER_BYTES:HEADER_BYTES + push_bytes(rates, image)]
    return inline[:8 * rates].view(np.float64), inline[messages.prefix_bytes(rates, 0):]


class Request:
    """A worker's push to one server, and the place of its answer: a part of a ticket, used again when that is over."""

    body: tuple[()] = ()

    def __init__(self, link: Link, rates: int) -> None:
        self.link, self.image = link, link.image
        self.inline = push_bytes(rates, self.image)
        self.message = arrays.empty(HEADER_BYTES + self.inline, np.uint8)
        self.message[...] = 0
        self.header = self.message.data
        self.rates, place = places(self.message, rates, self.image)
        self._gradients = _Copies(self.image, place)
        self.reply = link.inbox(link.room)
        self._params = _Copies(self.image, self.reply[HEADER_BYTES:HEADER_BYTES + self.image.nbytes])
        self.send: Any = None
        self.pending: Any = None

    def post(self, transport: Transport, header: tuple[Kind, int, int, int], rates: np.ndarray,
             grads: np.ndarray) -> None:
        """Send the gradients, and expect the answer; the header is (kind, sender, step, count)."""
        self.rates[...] = rates
        for place, source in self._gradients.pairs(grads):
            place[...] = source
        protocol.write_header(self.header, *header, 0, self.inline)
        link = self.link
        link.asked = [one for one in link.asked if not one.pending.done()]
        self.send = transport.post_send(link.rank, Channel.REQUEST, self.message)
        self.pending = transport.post_receive(link.rank, Channel.REPLY, self.reply)
        link.asked.append(self)

    def scatter(self, into: np.ndarray) -> None:
        """Copy the parameters that were answered to a flat array."""
        for source, place in self._params.pairs(into):
            place[...] = source

    def is_sent(self) -> bool:
        """Whether nothing is read any more."""
        return self.send.done()

    def is_answered(self) -> bool:
        """Whether the answer is there."""
        return self.pending.done()

    def give_back(self) -> None:
        """Let another push have it."""
        self.link.requests.append(self)


class _Copies:
    """Views of one buffer with their counterparts in a flat array, which is nearly always the same one."""

    def __init__(self, image: ServerImage, buffer: np.ndarray) -> None:
        self.runs = [(buffer[run.image:run.image + run.nbytes], run) for piece in image.pieces for run in piece.runs]
        self.flat: np.ndarray | None = None
        self.known: list[tuple[np.ndarray, np.ndarray]] = []

    def pairs(self, flat: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """[(view of the buffer, view of the flat array)]."""
        if self.flat is not flat:
            self.flat, self.known = flat, [(view, flat[run.flat:run.flat + run.nbytes]) for view, run in self.runs]
        return self.known


class Reply:
    """A server's answer with parameters to one worker, where they fit a message."""

    def __init__(self, sender: int, nbytes: int) -> None:
        self.sender, self.nbytes = sender, nbytes
        self.message: np.ndarray | None = None
        self.pending: Any = None

    def write(self, image: np.ndarray) -> np.ndarray:
        """The message, with these parameters; ``pending`` must be set to its send."""
        if self.message is None or not self.pending.done():
            self.message = arrays.empty(HEADER_BYTES + self.nbytes, np.uint8)
            Header(Kind.VALUES, self.sender, inline=self.nbytes).pack_into(self.message)
        self.message[HEADER_BYTES:] = image
        return self.message
