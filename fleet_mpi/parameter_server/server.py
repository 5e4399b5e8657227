"""A server's side: takes requests from all workers, hands pushes and pulls to the mode, answers.

A state machine: ``advance`` does whatever is ready and never waits, ``serve`` calls it until the last worker has
left. What happens with a push is the mode's business (``modes/``): it gets every piece as it arrives.
"""

from __future__ import annotations

import gc
import secrets
from typing import TYPE_CHECKING, Any

import numpy as np

from fleet_mpi.arrays import aligned
from fleet_mpi.errors import FleetError, PeerLost, UsageError
from fleet_mpi.parameter_server import agreement, messages, norms, preallocated
from fleet_mpi.parameter_server.inbox import Inbox, Push
from fleet_mpi.parameter_server.shrinking import Shrinking
from fleet_mpi.parameter_server.snapshots import Snapshots
from fleet_mpi.parameter_server.stalls import StallDetector
from fleet_mpi.ranks import policy, waiting
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fleet_mpi.parameter_server.agreement import Fingerprint
    from fleet_mpi.parameter_server.description import Description, LoadedFrom
    from fleet_mpi.parameter_server.tables.base import Table
    from fleet_mpi.wire.transport import Pending, Transport

PUSHES = Kind.PUSH, Kind.PUSH_PULL


class Server:
    """One server of a job. ``mode`` is the mode's server half; ``before_update`` moves schedules on by some steps."""

    def __init__(self, transport: Transport, index: int, workers: Sequence[int], servers: Sequence[int],
                 description: Description, mode: Any, fingerprint: Fingerprint | None = None,
                 name_of: Callable[[int], str] = str, before_update: Callable[[int], Any] | None = None,
                 largest: int | None = None) -> None:
        self.transport, self.index, self.mode, self.name_of = transport, index, mode, name_of
        self.description, self.fingerprint, self.before_update = description, fingerprint, before_update
        self.loaded_from: LoadedFrom | None = None
        self.job = secrets.token_hex(8)   # what tells this start of the job from others; server 0's counts
        self.largest = largest or protocol.LARGEST
        self._make_tables()
        self._make_inboxes(workers)
        self.active = set(range(len(workers)))
        self.applied = [0] * len(workers)   # pushes applied per worker
        self.exchange = norms.Exchange(transport, index, servers, name_of)
        self.sending: list[Pending] = []
        self._look_at = 16   # how many sends before those that are over are sorted out
        self._handlers: dict[Kind, Callable[[Inbox, Header], None]] = {
            Kind.HELLO: self._hello, Kind.PUSH: self._push, Kind.PUSH_PULL: self._push, Kind.PULL: self._pull,
            Kind.PULL_ROWS: self._pull_rows, Kind.LEAVE: self._leave, Kind.WAITING: self._waits_elsewhere}
        self.policy, self.stalls = policy.DEFAULT, StallDetector(self)
        self.snapshots = Snapshots(self)
        self._handlers |= self.snapshots.handlers | Shrinking(self).handlers
        mode.start(self)

    def _make_tables(self) -> None:
        described = self.description.tables
        self.recipes = {variable: one.recipe_of(variable) for one in described for variable in one.variables}
        names = {recipe.rate for recipe in self.recipes.values()} | set(self.description.rates)
        self.rates = {name: np.zeros(1, self.description.rate_dtypes.get(name, np.float32)) for name in sorted(names)}
        # The dense table's values are what workers get in return for a push; the others are asked for rows.
        self.dense = self.description.dense.table(self.index, self.rates)
        self.row_tables = [one.table(self.index, self.rates) for one in self.description.row_tables]
        self.tables: list[Table] = [self.dense, *self.row_tables]
        self.image, self.needs_norms = self.dense.image, any(table.needs_norms for table in self.tables)
        self._table_of: dict[str, Table] = {
            variable: table for one, table in zip(described, self.tables) for variable in one.variables}
        self._param_pieces = [self.dense.params[piece.start:piece.stop] for piece in self.image.pieces]

    def _make_inboxes(self, workers: Sequence[int]) -> None:
        rates, rows, image = len(self.description.rates), len(self.row_tables), self.image
        room = messages.inbox_bytes(rates, rows)
        self.is_small = messages.is_inline(image.nbytes)   # whether parameters fit a message
        self.inboxes = [Inbox(self, rank, number, room) for number, rank in enumerate(workers)]
        self._small_push: int | None = None   # the length of every push that is one message and has no rows
        if preallocated.serves(rows, [image]):
            self._small_push = preallocated.push_bytes(rates, image)
            for inbox in self.inboxes:
                given, gradients = preallocated.places(inbox.buffer, rates, image)
                inbox.small_push = [self.dense.read(gradients, 0)], given

    # ------------------------------------------------------------------ the loop

    def serve(self, until: Callable[[], bool] | None = None) -> None:
        """Serve until every worker has left, or ``until()`` is true."""
        gc.freeze()  # what was made so far stays: the collector need not look at it again with every message
        self.stalls.begin()
        waiting.poll(lambda: not self.active or until is not None and until(), self.advance, self.stalls.look)
        waiting.wait_until(self._all_sent, lambda: f"{self.name_of(self.transport.rank)}: answers are not taken",
                           self.transport.progress)
        if not self.active:
            self.exchange.close()

    def advance(self) -> bool:
        """Do what is ready; returns whether anything was. An error is told to the worker that asked."""
        happened = bool(self.needs_norms and self.exchange.inboxes and self.exchange.advance()
                        or self.snapshots.awaits and self.snapshots.advance())
        for inbox in self.inboxes:
            try:
                happened = inbox.advance() or happened
            except FleetError as error:
                self.tell(error, [inbox.index])
                raise
        return happened

    def _all_sent(self) -> bool:
        self.sending = [one for one in self.sending if not one.done()]
        return not self.sending

    def tell(self, error: FleetError, workers: Iterable[int]) -> None:
        """Let these workers raise this error when they look for their next answer."""
        for worker in workers:
            self.sending.append(self.transport.post_send(self.inboxes[worker].rank, Channel.REPLY,
                                                         messages.error_message(self.index, error)))

    # ------------------------------------------------------------------ requests

    def take(self, inbox: Inbox, header: Header) -> None:
        """Handle a request whose header has arrived."""
        handler = self._handlers.get(header.kind)
        if handler is None:
            raise PeerLost(f"{inbox.name} asked a server for {header.kind.name}")
        if header.kind not in PUSHES or self.stalls.held_up:
            self.stalls.note(inbox.index, header.kind)
        handler(inbox, header)

    def _hello(self, inbox: Inbox, header: Header) -> None:
        theirs = messages.decode(inbox.inline(header), inbox.name)
        if not isinstance(theirs, (dict, type(None))):
            raise PeerLost(f"{inbox.name} introduced itself as {theirs!r:.60}")
        differ = agreement.difference(theirs, self.fingerprint)
        if differ:
            raise UsageError(f"{inbox.name} and {self.name_of(self.transport.rank)} do not run the same "
                             f"job: {differ}")
        self.answer(inbox, inline=messages.encode({"loaded from": self.loaded_from, "job": self.job,
                                                   "workers": sorted(self.active)}))

    def _waits_elsewhere(self, inbox: Inbox, header: Header) -> None:
        inbox.release()

    def _leave(self, inbox: Inbox, header: Header) -> None:
        if self.policy.leave.ends_job:
            raise PeerLost(f"{inbox.name} has left, and the job's policy is to end then")
        self.active.discard(inbox.index)
        inbox.on_part = None  # nothing more is received
        self.mode.on_leave(inbox.index)

    def _pull(self, inbox: Inbox, header: Header) -> None:
        self.mode.on_pull(inbox.index, header)

    def _pull_rows(self, inbox: Inbox, header: Header) -> None:
        """Rows as they are now: a worker that waits for a round has sent no request for rows yet."""
        inline, prefix = inbox.inline(header), messages.prefix_bytes(0, len(self.row_tables))
        _, told = messages.read_prefix(inline, 0, len(self.row_tables), inbox.name)
        counts: list[int] = told.tolist()
        sizes = [table.answer_bytes(count) for table, count in zip(self.row_tables, counts)]
        messages.check_length(header, prefix, sum(aligned(8 * count) for count in counts),
                              f"{inbox.name} asked for rows in")
        if not header.body:
            self._answer_rows(inbox, counts, sizes, inline[prefix:])
            return
        ids = messages.room_for(header.body, inbox.name)
        inbox.receive_whole(ids, lambda: self._answer_rows(inbox, counts, sizes, ids))

    def _answer_rows(self, inbox: Inbox, counts: list[int], sizes: list[int], ids: np.ndarray) -> None:
        answer, start, begin = inbox.row_buffer(HEADER_BYTES + sum(sizes)), 0, 0
        values = answer[HEADER_BYTES:]
        for table, count, size in zip(self.row_tables, counts, sizes):
            table.answer(ids[begin:begin + 8 * count].view(np.int64), values[start:start + size])
            start, begin = start + size, begin + aligned(8 * count)
        if not messages.is_inline(len(values)):
            self.answer(inbox, Kind.VALUES, body=(values,))
            return
        Header(Kind.VALUES, self.index, inline=len(values)).pack_into(answer)
        inbox.release([self._post(inbox.rank, Channel.REPLY, answer)])

    def _push(self, inbox: Inbox, header: Header) -> None:
        if self.snapshots.limits is not None and self.snapshots.holds(inbox, header):
            return
        self.snapshots.begun[inbox.index] = header.step
        if header.step != self.applied[inbox.index] + 1:
            raise PeerLost(f"{inbox.name} sent push {header.step}, expected {self.applied[inbox.index] + 1}: one was "
                           f"lost or came twice")
        if header.inline == self._small_push:
            self.mode.on_push(Push(inbox, header, *inbox.small_push))
        else:
            inbox.read_push(header)

    def table_of(self, variable: str) -> Table:
        """The table that keeps a variable."""
        return self._table_of.get(variable, self.dense)

    # ------------------------------------------------------------------ for the modes

    def update(self, key: tuple[int, int], pushes: Sequence[Push], then: Callable[[], Any]) -> None:
        """Change all tables by the mean of these pushes, given in worker order; then call ``then``.

        At once, or when the norms are known: ``key`` tells this update from others on all servers. What cannot be is
        refused before anything has changed.
        """
        self._refuse(pushes)
        if self.needs_norms:
            gradients = [one for number, table in enumerate(self.tables)
                         for one in table.gradients([push.parts[number] for push in pushes])]
            self.exchange.run(key, norms.update(gradients, self.recipes), then)
            return
        self.dense.update([push.parts[0] for push in pushes])
        self._update_row_tables(pushes)
        then()

    def update_row_tables(self, pushes: Sequence[Push]) -> None:
        """Where the dense table was updated piece by piece, and no norms are needed: the other tables."""
        self._refuse(pushes)
        self._update_row_tables(pushes)

    def _update_row_tables(self, pushes: Sequence[Push]) -> None:
        for number, table in enumerate(self.row_tables, 1):
            table.update([push.parts[number] for push in pushes])

    def _refuse(self, pushes: Sequence[Push]) -> None:
        for number, table in enumerate(self.row_tables, 1):
            table.refuse([push.parts[number] for push in pushes])

    def set_rates(self, push: Push, steps: int = 1) -> None:
        """Take over the rates a worker set, and move schedules on: before an update."""
        for name, value in zip(self.description.rates, push.rates):
            self.rates[name][0] = value
        if self.before_update is not None:
            self.before_update(steps)

    def answer(self, inbox: Inbox, kind: Kind = Kind.DONE, inline: bytes | np.ndarray = b"",
               body: Sequence[np.ndarray] = ()) -> None:
        """Answer a request; its inbox takes the next one when the answer is sent."""
        total = sum(len(part) for part in body)
        sends = [self._post(inbox.rank, Channel.REPLY, messages.message(Header(kind, self.index, body=total), inline))]
        for part in body:
            sends += self._post_body(inbox.rank, part)
        inbox.release(sends)

    def answer_values(self, inbox: Inbox, image: np.ndarray) -> None:
        """Answer with this image of parameters; one too long for a message must stay as it is until it is sent."""
        if self.is_small:
            inbox.reply.pending = self._post(inbox.rank, Channel.REPLY, inbox.reply.write(image))
            inbox.release()
            return
        sends = [self.begin_values(inbox)]
        for piece in self.image.pieces:
            sends += self._post_body(inbox.rank, image[piece.start:piece.stop])
        inbox.release(sends)

    def answer_now(self, inbox: Inbox) -> None:
        """Answer with the parameters as they are now, whatever changes them before all is sent.

        A copy that does not fit a message lies where the worker's gradients were: these are applied already.
        """
        image = self.dense.params
        if not self.is_small:
            image = inbox.image_buffer
            image[...] = self.dense.params
        self.answer_values(inbox, image)

    def begin_values(self, inbox: Inbox) -> Pending:
        """Announce parameters that follow piece by piece."""
        return self._post(inbox.rank, Channel.REPLY, messages.message(
            Header(Kind.VALUES, self.index, body=self.image.nbytes)))

    def send_params(self, rank: int, number: int) -> None:
        """Send one piece of the parameters to a rank, from where it lies."""
        self._post_body(rank, self._param_pieces[number])

    def _post_body(self, rank: int, part: np.ndarray) -> list[Pending]:
        """Post an array of an answer's body, cut if it is longer than a message may be."""
        if 0 < len(part) <= self.largest:
            return [self._post(rank, Channel.REPLY_BODY, part)]
        return [self._post(rank, Channel.REPLY_BODY, part[start:stop])
                for start, stop in protocol.cuts(len(part), self.largest)]

    def _post(self, rank: int, channel: Channel, array: np.ndarray) -> Pending:
        pending = self.transport.post_send(rank, channel, array)
        self.sending.append(pending)
        if len(self.sending) > self._look_at:
            self.sending = [one for one in self.sending if not one.done()]
            self._look_at = 2 * len(self.sending) + 16
        return pending
