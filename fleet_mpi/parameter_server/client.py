"""A worker's side: pushes gradients to all servers, pulls parameters back, without ever waiting in silence.

``params`` and ``grads`` are the flat arrays of the layout; an executor computes in views of them, so what is sent
and received needs no copy where it is long. ``push_pull`` starts a request to every server and returns a ticket;
``collect`` waits for its replies. Several requests may be under way: servers answer a worker's requests in their
order, and every request has buffers of its own. What is sent from, ``grads`` unless another array is given, must
stay as it is until its ticket is collected.
"""

import time
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.errors import PeerLost, Stalled, UsageError
from fleet_mpi.parameter_server import interruption, messages
from fleet_mpi.parameter_server.flat import FlatLayout, ServerImage
from fleet_mpi.parameter_server.patience import of_first_step
from fleet_mpi.parameter_server.row_routes import RowRequests
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import protocol, waiting
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind


class Description(NamedTuple):
    """What clients and servers of a job must agree on: plain data."""

    placement: object            # of the dense variables
    recipes: dict                # {variable: Recipe}
    rates: tuple = ()            # the learning rates that workers set, by name
    row_tables: tuple = ()       # RowTableDescription of each
    rate_dtypes: dict = {}       # {name: dtype} of the rates that are not float32
    keeps_states: bool = True    # False: optimizers and rates are the workers' (geo), servers only have parameters


class _Link:
    """What a client keeps per server: its image, and buffers that no request uses at the moment."""

    def __init__(self, rank, name, index, image, room, inbox):
        self.asked = []  # parts whose answer has not come
        self.rank, self.name, self.index, self.image, self.room, self.inbox = rank, name, index, image, room, inbox
        self.unused = defaultdict(list)  # by length
        self.letters = []
        self._places = (None, ()), (None, ())  # of the last two flat arrays: the gradients and the parameters

    def places_in(self, flat):
        """Where each piece lies in a flat array; None for those that must be gathered."""
        for known, places in self._places:
            if known is flat:
                return places
        places = [piece.in_place(flat) for piece in self.image.pieces]
        self._places = (flat, places), self._places[0]
        return places


class _Part:
    """One server's part of a request: what is sent and expected, and the buffers that takes."""

    def __init__(self, link):
        self.link, self.sends, self.taken = link, [], []
        self.reply = self.pending = self.letter = None
        self.body = []   # (pending, piece, its staging buffer or None)

    def buffer(self, nbytes):
        """A buffer for as long as this part lasts."""
        unused = self.link.unused[nbytes]
        made = unused.pop() if unused else self.link.inbox(nbytes) if nbytes == self.link.room else arrays.empty(
            nbytes, np.uint8)
        self.taken.append(made)
        return made

    def give_back(self):
        """Let other requests have the buffers."""
        for one in self.taken:
            self.link.unused[len(one)].append(one)
        self.taken = []
        if self.letter is not None:
            self.link.letters.append(self.letter)

    def is_sent(self):
        """Whether nothing is read any more."""
        self.sends = [one for one in self.sends if not one.done()]
        return not self.sends

    def is_answered(self):
        """Whether all that is expected is there."""
        return self.pending.done() and all(pending.done() for pending, _, _ in self.body)


class _Letter:
    """A push that is one message, written again and again: the buffer, and the places in it that change."""

    def __init__(self, link, rates):
        prefix = messages.prefix_bytes(rates, 0)
        self.length = prefix + link.image.nbytes
        self.message = arrays.empty(HEADER_BYTES + self.length, np.uint8)
        self.message[...] = 0
        self.header, inline = memoryview(self.message), self.message[HEADER_BYTES:]
        self.rates, self.image = inline[:8 * rates].view(np.float64), inline[prefix:]
        self.reply = link.inbox(link.room)


class Ticket:
    """A request to every server; ``into`` is the flat array that the parameters come to."""

    def __init__(self, kind, step, into):
        self.kind, self.step, self.into = kind, step, into
        self.parts = []


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
        self.links = [_Link(rank, name_of(rank), i, ServerImage(self.layout, description.placement.of_server(i)), room,
                            transport.inbox) for i, rank in enumerate(servers)]
        self.rows = RowRequests(self)
        self.interruption = None  # the exception that goes on when the request under way is over
        self.is_simple = not description.row_tables and all(messages.is_inline(link.image.nbytes)
                                                            for link in self.links)
        self.has_left = False
        # Kernels are compiled in the first step, the servers' when they have its gradients. ``first_step_s`` is 0 where
        # none are.
        self.first_step_s, self.is_first_step, self.first_wait = 0.0, False, None
        self._notices = []

    @property
    def push_bytes(self):
        """Of the dense gradients in one push to all servers, headers not counted."""
        return sum(link.image.nbytes for link in self.links)

    # ------------------------------------------------------------------ dense gradients and parameters

    def push_pull(self, rows=(), count=1, grads=None, into=None):
        """Send the gradients (and row gradients, one Rows or None per table) and ask for the parameters."""
        return self._push(Kind.PUSH_PULL, rows, count, grads, into)

    def push(self, rows=(), count=1, grads=None):
        """Send the gradients of ``count`` batches only; ``collect`` waits until the servers have applied them."""
        return self._push(Kind.PUSH, rows, count, grads)

    def pull(self, into=None):
        """Ask for the parameters, into the flat array given or ``params``."""
        ticket = Ticket(Kind.PULL, self.pushes, self.params if into is None else into)
        try:
            for link in self.links:
                part = self._expect_values(ticket, link)
                self._send(part, messages.message(Header(Kind.PULL, self.index, self.pushes)))
        except BaseException as error:
            self.give_up(error)
            raise
        return ticket

    def pull_rows(self, wanted, into=None):
        """{table number: rows} for {table number: ids}, in the order of the ids, which may repeat.

        One request per server that has any of them. ``into`` may give {table number: [arrays]} to fill, one behind
        the other. An id that is no row of its table is refused before anything is sent.
        """
        return self.rows.pull(wanted, into)

    def _push(self, kind, rows, count, grads, into=None):
        self.pushes += 1
        ticket = Ticket(kind, self.pushes, self.params if into is None else into)
        grads = self.grads if grads is None else grads
        try:
            if self.is_simple:
                ticket.parts = [self._push_letter(link, kind, count, grads) for link in self.links]
                return ticket
            for link, cut in zip(self.links, self.rows.cut(rows)):
                part = self._expect_values(ticket, link) if kind == Kind.PUSH_PULL else self._expect(link, ticket)
                self._send_push(part, kind, cut, count, grads)
        except BaseException as error:
            self.give_up(error)
            raise
        return ticket

    def _push_letter(self, link, kind, count, grads):
        """The way of small models without rows, where every microsecond is a large part of a step."""
        letter = link.letters.pop() if link.letters else _Letter(link, len(self.rates))
        letter.rates[...] = self.rates
        for piece in link.image.pieces:
            piece.gather(grads, letter.image)
        protocol.write_header(letter.header, kind, self.index, self.pushes, count, inline=letter.length)
        part = _Part(link)
        part.letter, part.reply = letter, letter.reply
        part.sends.append(self.transport.post_send(link.rank, Channel.REQUEST, letter.message))
        part.pending = self.transport.post_receive(link.rank, Channel.REPLY, letter.reply)
        link.asked = [one for one in link.asked if not one.pending.done()] + [part]
        return part

    def _send_push(self, part, kind, cut, count, grads):
        link, tables = part.link, len(self.description.row_tables)
        row_body = messages.joined([array for one in cut for array in one]) if tables else _NOTHING
        prefix = messages.prefix_bytes(len(self.rates), tables)
        outbox = part.buffer(link.room)
        inline, image = outbox[HEADER_BYTES:], link.image
        set_rates, row_counts = messages.split_prefix(inline, len(self.rates), tables)
        set_rates[...] = self.rates
        row_counts[...] = [len(ids) for ids, _ in cut]
        if messages.is_inline(image.nbytes, len(row_body)):
            for piece in image.pieces:
                piece.gather(grads, inline[prefix:])
            end = prefix + image.nbytes + len(row_body)
            inline[prefix + image.nbytes:end] = row_body
            self._send_header(part, outbox, Header(kind, self.index, self.pushes, count, inline=end))
            return
        self._send_header(part, outbox, Header(kind, self.index, self.pushes, count, inline=prefix,
                                               body=image.nbytes + len(row_body)))
        for piece, place in zip(image.pieces, link.places_in(grads)):
            self._send_body(part, _gathered(part, piece, grads) if place is None else place)
        self._send_body(part, row_body)

    def _send_header(self, part, outbox, header):
        header.pack_into(outbox)
        self._send(part, outbox[:HEADER_BYTES + header.inline])

    def _send(self, part, array, channel=Channel.REQUEST):
        part.sends.append(self.transport.post_send(part.link.rank, channel, array))

    def _send_body(self, part, body):
        if 0 < len(body) <= self.largest:
            self._send(part, body, Channel.REQUEST_BODY)
            return
        for start, stop in protocol.cuts(len(body), self.largest):
            self._send(part, body[start:stop], Channel.REQUEST_BODY)

    def _end(self, part):
        """Wait until nothing of what was sent is still being read."""
        self._wait(part.is_sent, lambda: f"{part.link.name} does not take what was sent to it", part.link)
        part.give_back()

    # ------------------------------------------------------------------ replies

    def _expect(self, link, ticket=None):
        part = _Part(link)
        part.reply = part.buffer(link.room)
        part.pending = self.transport.post_receive(link.rank, Channel.REPLY, part.reply)
        link.asked = [one for one in link.asked if not one.pending.done()] + [part]
        if ticket is not None:
            ticket.parts.append(part)
        return part

    def _expect_values(self, ticket, link):
        """Post the receives of a reply with parameters: long pieces go straight to where they belong."""
        part = self._expect(link, ticket)
        if not messages.is_inline(link.image.nbytes):
            for piece, place in zip(link.image.pieces, link.places_in(ticket.into)):
                staged = part.buffer(piece.stop - piece.start) if place is None else None
                for start, stop in protocol.cuts(piece.stop - piece.start, self.largest):
                    target = (place if staged is None else staged)[start:stop]
                    part.body.append((self.transport.post_receive(link.rank, Channel.REPLY_BODY, target), piece,
                                      staged))
        return part

    def is_answered(self, ticket):
        """Whether ``collect`` would not wait."""
        self.transport.progress()
        return all(part.is_answered() for part in ticket.parts)

    def collect(self, ticket):
        """Wait for all replies of a ticket; afterwards ``ticket.into`` has the parameters that were asked for."""
        try:
            for part in ticket.parts:
                header = self._header(part)
                if header.kind == Kind.VALUES and ticket.kind != Kind.PUSH:
                    self._take_values(ticket, part, header)
                elif header.kind != Kind.DONE:
                    raise PeerLost(f"{self._me()}: {part.link.name} answered {header.kind.name} to "
                                   f"{ticket.kind.name}")
                self._end(part)
        except BaseException as error:
            self.give_up(error)
            raise
        if ticket.kind != Kind.PULL:
            self.is_first_step = False
        if self.interruption is not None:
            self.let_go()

    def _header(self, part):
        name = part.link.name
        self._wait(part.pending.done, lambda: f"no answer from {name}", part.link)
        header = Header.unpack(part.reply, part.pending.received, name)
        if header.kind is Kind.ERROR:
            messages.raise_error(part.reply[HEADER_BYTES:HEADER_BYTES + header.inline], name)
        return header

    def _take_values(self, ticket, part, header):
        image = part.link.image
        if header.inline + header.body != image.nbytes:
            raise PeerLost(f"{self._me()}: {part.link.name} sent {header.inline + header.body} bytes of "
                           f"parameters, expected {image.nbytes}")
        if not header.body:
            for piece in image.pieces:
                piece.scatter(part.reply[HEADER_BYTES:HEADER_BYTES + header.inline], ticket.into)
        for pending, piece, staged in part.body:
            self._wait_within(part, pending)
            if staged is not None:
                piece.scatter(staged, ticket.into)

    def _wait_within(self, part, pending):
        self._wait(pending.done, lambda: f"{part.link.name} stopped within an answer", part.link)

    # ------------------------------------------------------------------ other requests

    def ask(self, link, kind, inline=b"", body=None, number=0, step=0):
        """One request to one server and its answer: (header, inline, body)."""
        return self.hear(self.start(link, kind, inline, body, number, step), kind)

    def start(self, link, kind, inline=b"", body=None, number=0, step=0):
        """The first half of ``ask``, for servers that cannot answer before the others were asked too."""
        body = _NOTHING if body is None else body
        if len(inline) > protocol.PIECE:   # the room that every server has, whatever it knows of this job
            raise UsageError(f"{self._me()}: {kind.name} to {link.name} has {len(inline)} bytes, a message at most "
                             f"{protocol.PIECE}")
        try:
            part = self._expect(link)
            self._send(part, messages.message(Header(kind, self.index, step, number=number, body=len(body)), inline))
            self._send_body(part, body)
        except BaseException as error:
            self.give_up(error)
            raise
        return part

    def hear(self, part, kind):
        """The second half of ``ask``."""
        return self.hear_all([part], kind)[0]

    def hear_all(self, parts, kind, places=None):
        """The answers of several requests, whose bodies come at the same time: [(header, inline, body)].

        ``places(link, inline)`` gives the byte arrays that a body fills, each a message or more, and there is no body
        to return; without it, a body comes in a new array.
        """
        try:
            found = [self._open(part, kind, places) for part in parts]
            for part in parts:
                for pending, _, _ in part.body:
                    self._wait_within(part, pending)
                self._end(part)
        except BaseException as error:
            self.give_up(error)
            raise
        self.let_go()
        return found

    def _open(self, part, kind, places):
        """Take the header of an answer and post the receives of its body."""
        link, header = part.link, self._header(part)
        answer = part.reply[HEADER_BYTES:HEADER_BYTES + header.inline].copy()
        body = None if places is not None else messages.room_for(header.body, link.name)
        targets = [body] if places is None else places(link, answer)
        expected = sum(map(len, targets))
        if expected != header.body:
            raise PeerLost(f"{self._me()}: {link.name} answers {kind.name} with {header.body} bytes, expected "
                           f"{expected}")
        part.body = [(self.transport.post_receive(link.rank, Channel.REPLY_BODY, target[start:stop]), None, None)
                     for target in targets for start, stop in protocol.cuts(len(target), self.largest)]
        return header, answer, body

    def hello(self, fingerprint):
        """Compare what this worker and the servers believe of the job; the difference is an error.

        Returns what each server says of itself: {"loaded from": [folder, files] or None, "job": a text}.
        """
        greeting = messages.encode(fingerprint)
        answers = [messages.decode(self.ask(link, Kind.HELLO, greeting)[1], link.name) for link in self.links]
        self.is_first_step = True
        return answers

    def leave(self):
        """Say that this worker sends nothing more. May be called again."""
        if self.has_left:
            return
        self.has_left = True
        parts = [_Part(link) for link in self.links]
        try:
            for part in parts:
                self._send(part, messages.message(Header(Kind.LEAVE, self.index, self.pushes)))
            for part in parts:
                self._end(part)
        except BaseException as error:
            self.give_up(error)
            raise
        self.let_go()

    # ------------------------------------------------------------------ exceptions from outside

    @property
    def is_cut_off(self):
        """Whether it was interrupted in the middle of a request, and can do nothing more."""
        return isinstance(self.transport, interruption.CutOff)

    def give_up(self, error):
        """A request ends by this exception: cut this worker off, unless it is the request's own error."""
        self.interruption = None
        if interruption.is_from_outside(error) and not self.is_cut_off:
            self.transport = interruption.CutOff(self.transport, self._me(), error)

    def let_go(self):
        """A request is over: raise what came meanwhile."""
        error, self.interruption = self.interruption, None
        if error is not None:
            raise error

    def _may_go_on(self, error):
        """Whether the request comes to its end first, after this exception of a wait."""
        if self.interruption is not None and isinstance(error, Stalled):
            raise self.interruption
        if self.interruption is not None or not interruption.is_from_outside(error):
            return False
        self.interruption = error
        return True

    # ------------------------------------------------------------------ waiting

    def _wait(self, is_done, what, link):
        try:
            if not is_done():
                with waiting.told_by_the_first(self.index):
                    waiting.wait_until(is_done, lambda: f"{self._me()}: {what()}", self.transport, self._longest,
                                       lambda: self._say_that_i_wait(link))
        except BaseException as error:
            if not self._may_go_on(error):
                raise
            self._wait(is_done, what, link)

    def _longest(self):
        """A server that waits for another worker names that one; this worker's patience must be longer."""
        if self.interruption is not None:
            return interruption.FINISHING_S
        longest = waiting.deadline()
        if self.is_first_step and not self.rows.are_known:
            longest = of_first_step(longest, self.first_step_s - self._first_waited())
        return longest * 1.1 + min(2.0, longest)

    def _first_waited(self):
        """How long ago the first push was first waited for: a worker may go on before it is answered, and wait
        again."""
        if self.pushes and self.first_wait is None:
            self.first_wait = time.monotonic()
        return time.monotonic() - self.first_wait if self.pushes else 0.0

    def _say_that_i_wait(self, link):
        """Tell the other servers that this worker is held up: they may wait for it, and must not call it late."""
        for other in self.links:
            if other is not link and all(part.pending.done() for part in other.asked):
                notice = messages.message(Header(Kind.WAITING, self.index, self.pushes, number=link.index))
                self._notices.append(self.transport.post_send(other.rank, Channel.REQUEST, notice))

    def _me(self):
        return self.name_of(self.transport.rank)


_NOTHING = np.empty(0, np.uint8)


def _gathered(part, piece, grads):
    """A piece of the gradients in a buffer."""
    found = part.buffer(piece.stop - piece.start)
    piece.gather(grads, found)
    return found
