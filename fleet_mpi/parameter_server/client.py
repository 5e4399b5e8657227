"""A worker's side: pushes gradients to all servers, pulls parameters back, without ever waiting in silence.

``params`` and ``grads`` are the flat arrays of the layout; an executor computes in views of them, so what is sent
and received needs no copy where it is long. ``push_pull`` starts a request to every server and returns a ticket;
``collect`` waits for its replies. Both are cheap to call apart, so that one thread can play several workers.
"""

from typing import NamedTuple

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.errors import PeerLost
from fleet_mpi.parameter_server import messages
from fleet_mpi.parameter_server.flat import FlatLayout, ServerImage
from fleet_mpi.wire import protocol, waiting
from fleet_mpi.wire.protocol import HEADER_BYTES, Channel, Header, Kind


class Description(NamedTuple):
    """What clients and servers of a job must agree on: plain data."""

    placement: object            # of the dense variables
    recipes: dict                # {variable: Recipe}
    rates: tuple = ()            # the learning rates that workers set, by name
    row_tables: tuple = ()       # RowTableDescription of each
    rate_dtypes: dict = {}       # {name: dtype} of the rates that are not float32


class _Link:
    """What a client keeps per server: the image's pieces, the buffers, and the replies it still expects."""

    def __init__(self, rank, index, image, inbox_bytes):
        self.rank, self.index, self.image = rank, index, image
        self.outbox = arrays.empty(inbox_bytes, np.uint8)
        self.reply = arrays.empty(inbox_bytes, np.uint8)
        self.staging = {}  # piece number -> buffer, for pieces that are gathered; one for each direction
        self.sending = []

    def staged(self, number, direction):
        """The buffer of a gathered piece."""
        piece = self.image.pieces[number]
        if (number, direction) not in self.staging:
            self.staging[number, direction] = arrays.empty(piece.stop - piece.start, np.uint8)
        return self.staging[number, direction]


class Ticket:
    """A request to every server, and what is expected back."""

    def __init__(self, kind, step):
        self.kind, self.step = kind, step
        self.expected = []   # (link, the reply's pending, pendings of its pieces)


class Client:
    """One worker's connection to all servers. ``name_of(rank)`` says who a rank is, for sentences."""

    def __init__(self, transport, index, servers, description, name_of=str, largest=None):
        self.transport, self.index, self.description, self.name_of = transport, index, description, name_of
        self.largest = largest or protocol.LARGEST
        self.layout = FlatLayout(description.placement.variables)
        self.params, self.grads = self.layout.new_array(), self.layout.new_array()
        self.rates = np.zeros(len(description.rates))
        self.pushes = 0
        room = messages.inbox_bytes(len(description.rates), len(description.row_tables))
        self.links = [_Link(rank, i, ServerImage(self.layout, description.placement.of_server(i)), room)
                      for i, rank in enumerate(servers)]
        self.has_left = False

    # ------------------------------------------------------------------ dense gradients and parameters

    def push_pull(self, rows=(), count=1):
        """Send the gradients (and row gradients, one Rows or None per table) and ask for the parameters."""
        return self._push(Kind.PUSH_PULL, rows, count)

    def push(self, rows=(), count=1):
        """Send the gradients only; ``collect`` waits until the servers have them."""
        return self._push(Kind.PUSH, rows, count)

    def pull(self, into=None):
        """Ask for the parameters, into the flat array given or ``params``."""
        ticket = Ticket(Kind.PULL, self.pushes)
        ticket.into = self.params if into is None else into
        for link in self.links:
            self._expect_values(ticket, link)
            self._send(link, messages.message(Header(Kind.PULL, self.index, self.pushes)))
        return ticket

    def _push(self, kind, rows, count):
        self.pushes += 1
        ticket = Ticket(kind, self.pushes)
        ticket.into = self.params
        for link in self.links:
            if kind == Kind.PUSH_PULL:
                self._expect_values(ticket, link)
            else:
                self._expect(ticket, link)
            self._send_push(link, kind, rows, count)
        return ticket

    def _send_push(self, link, kind, rows, count):
        tables = len(self.description.row_tables)
        parts = [self.description.row_tables[t].cut(rows[t], link.index) for t in range(tables)]
        row_body = messages.joined([array for part in parts for array in part]) if tables else _NOTHING
        prefix = messages.prefix_bytes(len(self.rates), tables)
        self._free(link)
        inline = link.outbox[HEADER_BYTES:]
        set_rates, row_counts = messages.split_prefix(inline, len(self.rates), tables)
        set_rates[...] = self.rates
        row_counts[...] = [len(ids) for ids, _ in parts]
        image = link.image
        if messages.is_inline(image.nbytes, len(row_body)):
            for piece in image.pieces:
                piece.gather(self.grads, inline[prefix:])
            end = prefix + image.nbytes + len(row_body)
            inline[prefix + image.nbytes:end] = row_body
            self._send_header(link, Header(kind, self.index, self.pushes, count, inline=end))
            return
        self._send_header(link, Header(kind, self.index, self.pushes, count, inline=prefix,
                                       body=image.nbytes + len(row_body)))
        for number, piece in enumerate(image.pieces):
            self._send_body(link, self._outgoing(link, number, piece))
        self._send_body(link, row_body)

    def _outgoing(self, link, number, piece):
        """A piece of the gradients: where it lies, or gathered."""
        found = piece.in_place(self.grads)
        if found is None:
            found = link.staged(number, "out")
            piece.gather(self.grads, found)
        return found

    def _send_header(self, link, header):
        header.pack_into(link.outbox)
        self._send(link, link.outbox[:HEADER_BYTES + header.inline])

    def _send(self, link, array, channel=Channel.REQUEST):
        link.sending.append(self.transport.post_send(link.rank, channel, array))

    def _send_body(self, link, body):
        for start, stop in protocol.cuts(len(body), self.largest):
            self._send(link, body[start:stop], Channel.REQUEST_BODY)

    def _free(self, link):
        """Wait until nothing of what was sent before is still being read."""
        def is_sent():
            link.sending = [one for one in link.sending if not one.done()]
            return not link.sending
        waiting.wait_until(is_sent, lambda: f"{self._me()}: {self._name(link)} does not take what was sent to it",
                           self.transport, self._longest())

    # ------------------------------------------------------------------ replies

    def _expect(self, ticket, link):
        ticket.expected.append((link, self._post_reply(link), []))

    def _post_reply(self, link):
        return self.transport.post_receive(link.rank, Channel.REPLY, link.reply)

    def _expect_values(self, ticket, link):
        """Post the receives of a reply with parameters: long pieces go straight to where they belong."""
        reply, body = self._post_reply(link), []
        if not messages.is_inline(link.image.nbytes):
            for number, piece in enumerate(link.image.pieces):
                place = piece.in_place(ticket.into)
                staged = link.staged(number, "in") if place is None else None
                for start, stop in protocol.cuts(piece.stop - piece.start, self.largest):
                    target = (place if staged is None else staged)[start:stop]
                    body.append((self.transport.post_receive(link.rank, Channel.REPLY_BODY, target), piece, staged))
        ticket.expected.append((link, reply, body))

    def is_answered(self, ticket):
        """Whether ``collect`` would not wait."""
        self.transport.progress()
        return all(reply.done() and all(pending.done() for pending, _, _ in body)
                   for _, reply, body in ticket.expected)

    def collect(self, ticket):
        """Wait for all replies of a ticket; afterwards ``ticket.into`` has the parameters that were asked for."""
        for link, reply, body in ticket.expected:
            header = self._header(link, reply)
            inline = link.reply[HEADER_BYTES:HEADER_BYTES + header.inline]
            if header.kind == Kind.VALUES and ticket.kind != Kind.PUSH:
                self._take_values(ticket, link, header, inline, body)
            elif header.kind != Kind.DONE:
                raise PeerLost(f"{self._me()}: {self._name(link)} answered {header.kind.name} to {ticket.kind.name}")
            self._free(link)

    def _header(self, link, reply):
        waiting.wait_until(reply.done, lambda: f"{self._me()}: no answer from {self._name(link)}", self.transport,
                           self._longest())
        header = Header.unpack(link.reply, reply.received, self._name(link))
        if header.kind == Kind.ERROR:
            messages.raise_error(link.reply[HEADER_BYTES:HEADER_BYTES + header.inline], self._name(link))
        return header

    def _take_values(self, ticket, link, header, inline, body):
        if header.inline + header.body != link.image.nbytes:
            raise PeerLost(f"{self._me()}: {self._name(link)} sent {header.inline + header.body} bytes of parameters, "
                           f"expected {link.image.nbytes}")
        if not header.body:
            for piece in link.image.pieces:
                piece.scatter(inline, ticket.into)
        for pending, piece, staged in body:
            waiting.wait_until(pending.done, lambda: f"{self._me()}: {self._name(link)} stopped within an answer",
                               self.transport, self._longest())
            if staged is not None:
                piece.scatter(staged, ticket.into)

    # ------------------------------------------------------------------ other requests

    def ask(self, link, kind, inline=b"", body=None, number=0, step=0):
        """One request to one server and its answer: (header, inline, body)."""
        body = _NOTHING if body is None else body
        reply = self._post_reply(link)
        self._send(link, messages.message(Header(kind, self.index, step, number=number, body=len(body)), inline))
        self._send_body(link, body)
        header = self._header(link, reply)
        answer = link.reply[HEADER_BYTES:HEADER_BYTES + header.inline].copy()
        got = arrays.empty(header.body, np.uint8)
        for start, stop in protocol.cuts(header.body, self.largest):
            pending = self.transport.post_receive(link.rank, Channel.REPLY_BODY, got[start:stop])
            waiting.wait_until(pending.done, lambda: f"{self._me()}: {self._name(link)} stopped within an answer",
                               self.transport, self._longest())
        self._free(link)
        return header, answer, got

    def hello(self, fingerprint):
        """Compare what this worker and the servers believe of the job; the difference is an error."""
        for link in self.links:
            self.ask(link, Kind.HELLO, messages.encode(fingerprint))

    def leave(self):
        """Say that this worker sends nothing more. May be called again."""
        if self.has_left:
            return
        self.has_left = True
        for link in self.links:
            self._free(link)
            self._send(link, messages.message(Header(Kind.LEAVE, self.index, self.pushes)))
        for link in self.links:
            self._free(link)

    def _longest(self):
        """A server that waits for another worker names that one; this worker's patience must be longer."""
        return waiting.deadline() * 1.1 + 2.0

    def _me(self):
        return self.name_of(self.transport.rank)

    def _name(self, link):
        return self.name_of(link.rank)


_NOTHING = np.empty(0, np.uint8)
