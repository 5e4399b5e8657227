"""A server's side: takes requests from all workers, hands pushes and pulls to the mode, answers.

A state machine: ``advance`` does whatever is ready and never waits, ``serve`` calls it until the last worker has
left. What happens with a push is the mode's business (``modes/``): it gets every piece as it arrives.
"""

import functools
import gc
import secrets

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.arrays import aligned
from fleet_mpi.errors import FleetError, PeerLost, UsageError
from fleet_mpi.parameter_server import agreement, messages, norms
from fleet_mpi.parameter_server.exchange import Exchange
from fleet_mpi.parameter_server.flat import FlatLayout, ServerImage
from fleet_mpi.parameter_server.patience import Patience
from fleet_mpi.parameter_server.snapshots import Snapshots
from fleet_mpi.parameter_server.tables.dense import DenseTable
from fleet_mpi.parameter_server.tables.rows import answer_of
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import protocol, waiting
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind

# How many pieces of a body are taken at a time: MPI copies all that is expected and there before it returns, and
# meanwhile nothing is updated or answered.
WINDOW = 2


class Push:
    """The gradients of one worker's step: an image of bytes that fills piece by piece, rates, and rows."""

    def __init__(self, inbox, header, image, rates):
        self.inbox, self.worker, self.header = inbox, inbox.index, header
        self.image, self.rates, self.rows = image, rates, []

    @property
    def wants_values(self):
        """Whether the worker asked for the parameters in return."""
        return self.header.kind == Kind.PUSH_PULL


class _Inbox:
    """Receives one worker's requests, one after the other: the next one when this one is answered."""

    def __init__(self, server, rank, index, room):
        self.server, self.rank, self.index, self.name = server, rank, index, server.name_of(rank)
        self.buffer = server.transport.inbox(room)
        self.reply = None      # the message of the last answer with parameters, for the next one
        self.gradients = None  # for images longer than one message
        self.busy = []         # sends that still read this inbox's arrays
        self.body, self.targets, self.on_part = [], (), None
        self.pending = None
        self.arm()

    def arm(self):
        """Wait for the next request."""
        self.on_part = None
        self.pending = self.server.transport.post_receive(self.rank, Channel.REQUEST, self.buffer)

    def release(self, sends=()):
        """This request's arrays are free once ``sends`` are over: take the next one then."""
        self.busy = list(sends)
        self.pending, self.on_part = None, None
        if not self.busy:
            self.arm()

    def receive_body(self, targets, on_part):
        """Receive a body into these arrays; ``on_part(number)`` is called as each is full, in order."""
        self.pending, self.on_part, self.arrived = None, on_part, 0
        self.targets, self.body = targets, []
        for _ in range(min(WINDOW, len(targets))):
            self._post_next()

    def _post_next(self):
        self.body.append(self.server.transport.post_receive(self.rank, Channel.REQUEST_BODY,
                                                            self.targets[len(self.body)]))

    def advance(self):
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

    def _take_parts(self):
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

    def inline(self, header):
        """The inline part of the request."""
        return self.buffer[HEADER_BYTES:HEADER_BYTES + header.inline]

    @functools.cached_property
    def image_parts(self):
        """The parts of the gradients' image that messages fill, and {part: the piece that is full with it}."""
        server, targets, ends = self.server, [], {}
        image = self.image_buffer(server.image.nbytes)
        for number, piece in enumerate(server.image.pieces):
            targets += [image[piece.start + start:piece.start + stop]
                        for start, stop in protocol.cuts(piece.stop - piece.start, server.largest)]
            ends[len(targets) - 1] = number
        return targets, ends

    def image_buffer(self, nbytes):
        """Where gradients too long for one message go."""
        if self.gradients is None:
            self.gradients = arrays.empty(nbytes, np.uint8)
        return self.gradients


class Server:
    """One server of a job. ``mode`` is the mode's server half; ``before_update`` moves schedules on by some steps."""

    def __init__(self, transport, index, workers, servers, description, mode, fingerprint=None, name_of=str,
                 before_update=None, largest=None):
        self.transport, self.index, self.mode, self.name_of = transport, index, mode, name_of
        self.description, self.fingerprint, self.before_update = description, fingerprint, before_update
        self.loaded_from = None   # [folder, files] that its values come from, if any
        self.job = secrets.token_hex(8)   # what tells this start of the job from others; server 0's counts
        self.largest = largest or protocol.LARGEST
        layout = FlatLayout(description.placement.variables)
        self.image = ServerImage(layout, description.placement.of_server(index))
        self.recipes = {**description.recipes, **{table.name: table.recipe for table in description.row_tables}}
        names = {recipe.rate for recipe in self.recipes.values()} | set(description.rates)
        self.rates = {name: np.zeros(1, description.rate_dtypes.get(name, np.float32)) for name in sorted(names)}
        self.table = DenseTable(self.image, self.recipes, self.rates)
        self.row_tables = [one.table(index, self.rates) for one in description.row_tables]
        room = messages.inbox_bytes(len(description.rates), len(description.row_tables))
        self.inboxes = [_Inbox(self, rank, i, room) for i, rank in enumerate(workers)]
        self.active = set(range(len(workers)))
        self.applied = [0] * len(workers)   # pushes applied per worker
        self.exchange = Exchange(transport, index, servers, name_of)
        self.sending, self._look_at = [], 16   # the latter: how many before those that are over are sorted out
        self._bound = {}
        self._param_pieces = [self.table.params[piece.start:piece.stop] for piece in self.image.pieces]
        self._prefix = messages.prefix_bytes(len(description.rates), len(self.row_tables))
        # The length of a push that is one message and has no rows; its parts lie at the same places every time.
        is_letter = not self.row_tables and messages.is_inline(self.image.nbytes)
        self._letter_bytes = self._prefix + self.image.nbytes if is_letter else None
        for inbox in self.inboxes if is_letter else ():
            inline = inbox.buffer[HEADER_BYTES:HEADER_BYTES + self._letter_bytes]
            inbox.letter = inline[self._prefix:], inline[:8 * len(description.rates)].view(np.float64)
        self._handlers = {Kind.HELLO: self._hello, Kind.PUSH: self._push, Kind.PUSH_PULL: self._push,
                          Kind.PULL: self._pull, Kind.PULL_ROWS: self._pull_rows, Kind.LEAVE: self._leave,
                          Kind.WAITING: self._waits_elsewhere}
        self.patience = Patience(self)
        self.snapshots = Snapshots(self)
        self._handlers |= self.snapshots.handlers
        mode.start(self)

    # ------------------------------------------------------------------ the loop

    def serve(self, until=None):
        """Serve until every worker has left, or ``until()`` is true."""
        gc.freeze()  # what was made so far stays: the collector need not look at it again with every message
        backoff = waiting.Backoff()
        while self.active and not (until is not None and until()):
            if self.advance():
                backoff.wake()
            elif backoff.rest() > waiting.SPIN:
                self.patience.check()
        waiting.wait_until(self._all_sent, lambda: f"{self.name_of(self.transport.rank)}: answers are not taken",
                           self.transport)
        if not self.active:
            self.exchange.close()

    def advance(self):
        """Do what is ready; returns whether anything was. An error is told to the worker that asked."""
        happened = (self.exchange.inboxes and self.exchange.advance()) or self.snapshots.advance()
        for inbox in self.inboxes:
            try:
                happened = inbox.advance() or happened
            except FleetError as error:
                self.tell(error, [inbox.index])
                raise
        return happened

    def _all_sent(self):
        self.sending = [one for one in self.sending if not one.done()]
        return not self.sending

    def tell(self, error, workers):
        """Let these workers raise this error when they look for their next answer."""
        for worker in workers:
            self.sending.append(self.transport.post_send(self.inboxes[worker].rank, Channel.REPLY,
                                                         messages.error_message(self.index, error)))

    # ------------------------------------------------------------------ requests

    def take(self, inbox, header):
        """Handle a request whose header has arrived."""
        handler = self._handlers.get(header.kind)
        if handler is None:
            raise PeerLost(f"{inbox.name} asked a server for {header.kind.name}")
        self.patience.note(inbox.index, header.kind)
        handler(inbox, header)

    def _hello(self, inbox, header):
        theirs = messages.decode(inbox.inline(header), inbox.name)
        if not isinstance(theirs, (dict, type(None))):
            raise PeerLost(f"{inbox.name} introduced itself as {theirs!r:.60}")
        differ = agreement.difference(theirs, self.fingerprint)
        if differ:
            raise UsageError(f"{inbox.name} and {self.name_of(self.transport.rank)} do not run the same "
                             f"job: {differ}")
        self.answer(inbox, inline=messages.encode({"loaded from": self.loaded_from, "job": self.job}))

    def _waits_elsewhere(self, inbox, header):
        inbox.release()

    def _leave(self, inbox, header):
        self.active.discard(inbox.index)
        inbox.on_part = None  # nothing more is received
        self.mode.on_leave(inbox.index)

    def _pull(self, inbox, header):
        self.mode.on_pull(inbox.index, header)

    def _pull_rows(self, inbox, header):
        """Rows as they are now: a worker that waits for a round has sent no request for rows yet."""
        inline, prefix = inbox.inline(header), messages.prefix_bytes(0, len(self.row_tables))
        _, counts = messages.read_prefix(inline, 0, len(self.row_tables), inbox.name)
        counts = counts.tolist()
        size = sum(aligned(8 * table.parts(count)[0]) for table, count in zip(self.row_tables, counts))
        expected = (prefix + size, 0) if messages.is_inline(0, size) else (prefix, size)
        if (header.inline, header.body) != expected:
            raise PeerLost(f"{inbox.name} asked for rows in {header.inline} + {header.body} bytes, expected "
                           f"{expected[0]} + {expected[1]}: do both run the same program?")
        if not header.body:
            self._answer_rows(inbox, counts, inline[prefix:])
            return
        ids = arrays.empty(size, np.uint8)
        targets = [ids[start:stop] for start, stop in protocol.cuts(size, self.largest)]

        def on_part(part):
            if part == len(targets) - 1:
                self._answer_rows(inbox, counts, ids)
        inbox.receive_body(targets, on_part)

    def _answer_rows(self, inbox, counts, ids):
        values = answer_of(self.row_tables, counts, ids)
        is_inline = messages.is_inline(0, len(values))
        self.answer(inbox, Kind.VALUES, values if is_inline else b"", () if is_inline else (values,))

    def _push(self, inbox, header):
        if self.snapshots.holds(inbox, header):
            return
        if header.step != self.applied[inbox.index] + 1:
            raise PeerLost(f"{inbox.name} sent push {header.step}, expected {self.applied[inbox.index] + 1}: one was "
                           f"lost or came twice")
        if header.inline == self._letter_bytes:
            self.mode.on_push(Push(inbox, header, *inbox.letter))
            return
        prefix, inline = self._prefix, inbox.inline(header)
        rates, row_counts = messages.read_prefix(inline, len(self.description.rates), len(self.row_tables),
                                                 inbox.name)
        row_parts = [table.parts(int(count)) for table, count in zip(self.row_tables, row_counts)]
        row_bytes = sum(nbytes for _, nbytes in row_parts)
        self._check_push(inbox, header, prefix, row_bytes)
        if not header.body:
            image = inline[prefix:prefix + self.image.nbytes]
            push = Push(inbox, header, image, rates)
            self._take_rows(push, row_parts, inline[prefix + self.image.nbytes:])
            self.mode.on_push(push)
            return
        self._receive_push(Push(inbox, header, inbox.image_buffer(self.image.nbytes), rates), row_parts, row_bytes)

    def _check_push(self, inbox, header, prefix, row_bytes):
        size = self.image.nbytes + row_bytes
        expected = (prefix + size, 0) if messages.is_inline(self.image.nbytes, row_bytes) else (prefix, size)
        if (header.inline, header.body) != expected:
            raise PeerLost(f"{inbox.name} sent gradients of {header.inline} + {header.body} bytes, "
                           f"expected {expected[0]} + {expected[1]}: do both run the same program?")

    def _receive_push(self, push, row_parts, row_bytes):
        """Receive the image in its pieces (each perhaps cut further), then the rows."""
        row_body = arrays.empty(row_bytes, np.uint8)
        targets, ends = push.inbox.image_parts
        targets = targets + [row_body[start:stop] for start, stop in protocol.cuts(row_bytes, self.largest)]

        def on_part(part):
            is_last = part == len(targets) - 1
            if is_last:
                self._take_rows(push, row_parts, row_body)
            if part in ends:
                self.mode.on_piece(push, ends[part])
            if is_last:
                self.mode.on_push(push)
        push.inbox.receive_body(targets, on_part)

    def _take_rows(self, push, row_parts, body):
        start = 0
        for table, (count, nbytes) in zip(self.row_tables, row_parts):
            push.rows.append(table.rows_in(body[start:start + nbytes], count))
            start += nbytes

    def table_of(self, variable):
        """The table that keeps a variable."""
        for described, table in zip(self.description.row_tables, self.row_tables):
            if described.name == variable:
                return table
        return self.table

    # ------------------------------------------------------------------ for the modes

    def bound(self, push):
        """The update calls, per piece, for gradients that lie where this push has them."""
        key = push.worker, push.header.body > 0   # a worker's gradients lie in its messages, or where their bodies go
        if key not in self._bound:
            self._bound[key] = self.table.bind(push.image)
        return self._bound[key]

    def update_with_norms(self, image, pushes):
        """The update of all tables where norms are needed, for ``exchange.run``: from an image of averaged gradients,
        and the mean of the rows of these pushes."""
        return norms.together([self.table.update_with_norms(image), *(
            table.update_with_norms([push.rows[number] for push in pushes], self.recipes)
            for number, table in enumerate(self.row_tables))])

    def update_rows(self, pushes):
        """Update the tables that travel by rows by the mean of these pushes, where no norms are needed."""
        for number, table in enumerate(self.row_tables):
            table.update_mean([push.rows[number] for push in pushes])

    def set_rates(self, push, steps=1):
        """Take over the rates a worker set, and move schedules on: before an update."""
        for name, value in zip(self.description.rates, push.rates):
            self.rates[name][0] = value
        if self.before_update is not None:
            self.before_update(steps)

    def answer(self, inbox, kind=Kind.DONE, inline=b"", body=()):
        """Answer a request; its inbox takes the next one when the answer is sent."""
        total = sum(len(part) for part in body)
        sends = [self._post(inbox.rank, Channel.REPLY, messages.message(Header(kind, self.index, body=total), inline))]
        for part in body:
            sends += self._post_body(inbox.rank, part)
        inbox.release(sends)

    def answer_values(self, inbox, image):
        """Answer with this image of parameters; one too long for a message must stay as it is until it is sent."""
        if messages.is_inline(len(image)):
            self._answer_inline(inbox, image)
            return
        sends = [self.begin_values(inbox)]
        for piece in self.image.pieces:
            sends += self._post_body(inbox.rank, image[piece.start:piece.stop])
        inbox.release(sends)

    def _answer_inline(self, inbox, image):
        """The way of small models: one message, from a buffer that each inbox keeps; the inbox is free at once."""
        message, pending = inbox.reply or (None, None)
        if message is None or not pending.done():
            message = arrays.empty(HEADER_BYTES + len(image), np.uint8)
            Header(Kind.VALUES, self.index, inline=len(image)).pack_into(message)
        message[HEADER_BYTES:] = image
        inbox.reply = message, self._post(inbox.rank, Channel.REPLY, message)
        inbox.release()

    def answer_now(self, inbox):
        """Answer with the parameters as they are now, whatever changes them before all is sent.

        A copy that does not fit a message lies where the worker's gradients were: these are applied already.
        """
        image = self.table.params
        if not messages.is_inline(len(image)):
            image = inbox.image_buffer(len(image))
            image[...] = self.table.params
        self.answer_values(inbox, image)

    def begin_values(self, inbox):
        """Announce parameters that follow piece by piece."""
        return self._post(inbox.rank, Channel.REPLY, messages.message(
            Header(Kind.VALUES, self.index, body=self.image.nbytes)))

    def send_params(self, rank, number):
        """Send one piece of the parameters to a rank, from where it lies."""
        self._post_body(rank, self._param_pieces[number])

    def _post_body(self, rank, part):
        """Post an array of an answer's body, cut if it is longer than a message may be."""
        if 0 < len(part) <= self.largest:
            return [self._post(rank, Channel.REPLY_BODY, part)]
        return [self._post(rank, Channel.REPLY_BODY, part[start:stop])
                for start, stop in protocol.cuts(len(part), self.largest)]

    def _post(self, rank, channel, array):
        pending = self.transport.post_send(rank, channel, array)
        self.sending.append(pending)
        if len(self.sending) > self._look_at:
            self.sending = [one for one in self.sending if not one.done()]
            self._look_at = 2 * len(self.sending) + 16
        return pending
