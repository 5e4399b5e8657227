"""A worker's side: pushes gradients to all servers, pulls parameters back, without ever waiting in silence.

``params`` and ``grads`` are the flat arrays of the layout; an executor computes in views of them, so what is sent
and received needs no copy where it is long. ``push_pull`` starts a request to every server and returns a ticket;
``collect`` waits for its replies. Several requests may be under way: servers answer a worker's requests in their
order, and every request has buffers of its own. What is sent from, ``grads`` unless another array is given, must
stay as it is until its ticket is collected.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from fleet_mpi.errors import PeerLost, Stalled
from fleet_mpi.parameter_server import interruption, messages, preallocated
from fleet_mpi.parameter_server.control_requests import ControlRequests
from fleet_mpi.parameter_server.flat import FlatLayout, ServerImage
from fleet_mpi.parameter_server.requests import Link, Part, Ticket
from fleet_mpi.parameter_server.row_requests import RowRequests
from fleet_mpi.ranks import liveness, waiting
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleet_mpi.arrays import Rows
    from fleet_mpi.parameter_server.agreement import Fingerprint
    from fleet_mpi.parameter_server.description import Description
    from fleet_mpi.parameter_server.requests import AnyPart, SourceOfRows
    from fleet_mpi.wire.transport import Pending, Transport


class Client:
    """One worker's connection to all servers. ``name_of(rank)`` says who a rank is, for sentences.

    ``flat``: arrays for parameters and gradients that are there already.
    """

    def __init__(self, transport: Transport, index: int, servers: Sequence[int], description: Description,
                 name_of: Callable[[int], str] = str, largest: int | None = None,
                 flat: tuple[np.ndarray, np.ndarray] | None = None) -> None:
        self.transport, self.index, self.description, self.name_of = transport, index, description, name_of
        self.largest = largest or protocol.LARGEST
        self.layout = FlatLayout(description.placement.variables)
        self.params, self.grads = flat or (self.layout.new_array(), self.layout.new_array())
        self.rates = np.zeros(len(description.rates))
        self.pushes = 0
        room = messages.inbox_bytes(len(description.rates), len(description.row_tables))
        self.links = [Link(self, rank, i, ServerImage(self.layout, description.placement.of_server(i)), room)
                      for i, rank in enumerate(servers)]
        self.rows, self.control = RowRequests(self), ControlRequests(self)
        self.source_of_rows: SourceOfRows = self.rows   # a worker that trains by itself has rows of its own (geo)
        self.interruption: BaseException | None = None  # the exception that goes on when the request under way is over
        self.is_small = preallocated.serves(len(description.row_tables), [link.image for link in self.links])
        self.has_left = False
        # Kernels are compiled in the first step, the servers' when they have its gradients. ``first_step_s`` is 0 where
        # none are.
        self.first_step_s, self.is_first_step = 0.0, False
        self.first_wait: float | None = None
        self._notices: list[Pending] = []

    @property
    def push_bytes(self) -> int:
        """Of the dense gradients in one push to all servers, headers not counted."""
        return sum(link.image.nbytes for link in self.links)

    @property
    def name(self) -> str:
        """Who this worker is, for sentences."""
        return self.name_of(self.transport.rank)

    def lie_in(self, params: np.ndarray, grads: np.ndarray) -> None:
        """Switch to these flat arrays and copy the current values to them; between requests only."""
        params[...], grads[...] = self.params, self.grads
        self.params, self.grads = params, grads

    # ------------------------------------------------------------------ dense gradients and parameters

    def push_pull(self, rows: Sequence[Rows | None] = (), count: int = 1, grads: np.ndarray | None = None,
                  into: np.ndarray | None = None) -> Ticket:
        """Send the gradients (and row gradients, one Rows or None per table) and ask for the parameters."""
        return self._push(Kind.PUSH_PULL, rows, count, grads, into)

    def push(self, rows: Sequence[Rows | None] = (), count: int = 1, grads: np.ndarray | None = None) -> Ticket:
        """Send the gradients of ``count`` batches only; ``collect`` waits until the servers have applied them."""
        return self._push(Kind.PUSH, rows, count, grads)

    def pull(self, into: np.ndarray | None = None) -> Ticket:
        """Ask for the parameters, into the flat array given or ``params``."""
        ticket = Ticket(Kind.PULL, self.pushes, self.params if into is None else into, [])
        try:
            for link in self.links:
                part = Part(link).expect_values(ticket.into)
                ticket.parts.append(part)
                part.send(messages.message(Header(Kind.PULL, self.index, self.pushes)))
        except BaseException as error:
            self.give_up(error)
            raise
        return ticket

    def pull_rows(self, wanted: Mapping[int, np.ndarray],
                  into: Mapping[int, Sequence[np.ndarray]] | None = None) -> dict[int, Any]:
        """{table number: rows} for {table number: ids}, in the order of the ids, which may repeat.

        One request per server that has any of them. ``into`` may give {table number: [arrays]} to fill. An id that is
        no row of its table is refused before anything is sent.
        """
        return self.source_of_rows.pull(wanted, into)

    def _push(self, kind: Kind, rows: Sequence[Rows | None], count: int, grads: np.ndarray | None,
              into: np.ndarray | None = None) -> Ticket:
        self.pushes += 1
        ticket = Ticket(kind, self.pushes, self.params if into is None else into, [])
        grads = self.grads if grads is None else grads
        try:
            if self.is_small:
                for link in self.links:
                    request = link.requests.pop() if link.requests else preallocated.Request(link, len(self.rates))
                    request.post(self.transport, (kind, self.index, self.pushes, count), self.rates, grads)
                    ticket.parts.append(request)
                return ticket
            for link, cut in zip(self.links, self.rows.cut(rows)):
                part = Part(link)
                ticket.parts.append(part.expect_values(ticket.into) if kind == Kind.PUSH_PULL else part.expect())
                part.send_push(Header(kind, self.index, self.pushes, count), self.rates, cut, grads)
        except BaseException as error:
            self.give_up(error)
            raise
        return ticket

    # ------------------------------------------------------------------ replies

    def end(self, part: AnyPart) -> None:
        """Wait until nothing of what was sent is still being read."""
        self._wait(part.is_sent, lambda: f"{part.link.name} does not take what was sent to it", part.link)
        part.give_back()

    def is_answered(self, ticket: Ticket) -> bool:
        """Whether ``collect`` would not wait."""
        self.transport.progress()
        return all(part.is_answered() for part in ticket.parts)

    def collect(self, ticket: Ticket) -> None:
        """Wait for all replies of a ticket; afterwards ``ticket.into`` has the parameters that were asked for."""
        try:
            for part in ticket.parts:
                header = self.header_of(part)
                if header.kind == Kind.VALUES and ticket.kind != Kind.PUSH:
                    self._take_values(ticket.into, part, header)
                elif header.kind != Kind.DONE:
                    raise PeerLost(f"{self.name}: {part.link.name} answered {header.kind.name} to "
                                   f"{ticket.kind.name}")
                self.end(part)
        except BaseException as error:
            self.give_up(error)
            raise
        if ticket.kind != Kind.PULL:
            self.is_first_step = False
        if self.interruption is not None:
            self.let_go()

    def header_of(self, part: AnyPart) -> Header:
        """Wait for the answer; raises the error that it is."""
        name = part.link.name
        self._wait(part.pending.done, lambda: f"no answer from {name}", part.link)
        header = Header.unpack(part.reply, part.pending.received, name)
        if header.kind is Kind.ERROR:
            messages.raise_error(part.reply[HEADER_BYTES:HEADER_BYTES + header.inline], name)
        return header

    def _take_values(self, into: np.ndarray, part: AnyPart, header: Header) -> None:
        image = part.link.image
        if header.inline + header.body != image.nbytes:
            raise PeerLost(f"{self.name}: {part.link.name} sent {header.inline + header.body} bytes of parameters, "
                           f"expected {image.nbytes}")
        if not header.body:
            part.scatter(into)
        for pending, piece, staged in part.body:
            self.wait_within(part, pending)
            if staged is not None:
                piece.scatter(staged, into)

    def wait_within(self, part: AnyPart, pending: Pending) -> None:
        """Wait for a piece of an answer's body."""
        self._wait(pending.done, lambda: f"{part.link.name} stopped within an answer", part.link)

    # ------------------------------------------------------------------ coming and going

    def hello(self, fingerprint: Fingerprint | None) -> list[dict[str, Any]]:
        """Compare what this worker and the servers believe of the job; the difference is an error.

        Returns what each server says of itself: {"loaded from": [folder, files] or None, "job": a text, "workers":
        those that have not left}.
        """
        greeting = messages.encode(fingerprint)
        answers = [messages.decode(self.control.ask(link, Kind.HELLO, greeting)[1], link.name) for link in self.links]
        self.is_first_step = True
        return answers

    def leave(self) -> None:
        """Say that this worker sends nothing more. May be called again."""
        if self.has_left:
            return
        self.has_left = True
        parts = [Part(link) for link in self.links]
        try:
            for part in parts:
                part.send(messages.message(Header(Kind.LEAVE, self.index, self.pushes)))
            for part in parts:
                self.end(part)
        except BaseException as error:
            self.give_up(error)
            raise
        self.let_go()

    # ------------------------------------------------------------------ exceptions from outside

    @property
    def is_cut_off(self) -> bool:
        """Whether this client was interrupted during a request, and can no longer be used."""
        return isinstance(self.transport, interruption.CutOff)

    def give_up(self, error: BaseException) -> None:
        """A request ends by this exception: cut this worker off, unless it is the request's own error."""
        self.interruption = None
        if interruption.is_from_outside(error) and not self.is_cut_off:
            self.transport = interruption.CutOff(self.transport, self.name, error)

    def let_go(self) -> None:
        """A request is over: raise what came meanwhile."""
        error, self.interruption = self.interruption, None
        if error is not None:
            raise error

    def _may_go_on(self, error: BaseException) -> bool:
        """Whether the request comes to its end first, after this exception of a wait."""
        if self.interruption is not None and isinstance(error, Stalled):
            raise self.interruption
        if self.interruption is not None or not interruption.is_from_outside(error):
            return False
        self.interruption = error
        return True

    # ------------------------------------------------------------------ waiting

    def _wait(self, is_done: Callable[[], bool], what: Callable[[], str], link: Link) -> None:
        try:
            if not is_done() and not waiting.spin(is_done, self.transport.progress):
                self._poll(is_done, what, link)
        except BaseException as error:
            if not self._may_go_on(error):
                raise
            self._wait(is_done, what, link)

    def _poll(self, is_done: Callable[[], bool], what: Callable[[], str], link: Link) -> None:
        limit_s = self._limit_s()
        told: list[Link] = []

        def look(idle_s: float) -> None:
            if not told and idle_s > limit_s * liveness.NOTICE_PART:
                told.append(link)
                self._say_that_i_wait(link)
        try:
            waiting.wait_until(is_done, lambda: f"{self.name}: {what()}", self.transport.progress, limit_s, look,
                               waiting.SPIN_S)
        except Stalled as error:
            liveness.report_by_first(error, self.index)
            raise

    def _limit_s(self) -> float:
        """How long this worker waits for a server."""
        if self.interruption is not None:
            return liveness.FINISHING_S
        limit_s = waiting.deadline_s()
        if self.is_first_step and not self.rows.are_known:
            limit_s = liveness.first_step_limit_s(limit_s, self.first_step_s - self._first_waited())
        return liveness.worker_limit_s(limit_s)

    def _first_waited(self) -> float:
        """How long ago the first push was first waited for: a worker may go on before it is answered, and wait
        again."""
        if not self.pushes:
            return 0.0
        if self.first_wait is None:
            self.first_wait = time.monotonic()
        return time.monotonic() - self.first_wait

    def _say_that_i_wait(self, link: Link) -> None:
        """Tell the other servers that this worker is waiting, so that they do not report it as late."""
        for other in self.links:
            if other is not link and all(part.pending.done() for part in other.asked):
                notice = messages.message(Header(Kind.WAITING, self.index, self.pushes, number=link.index))
                self._notices.append(self.transport.post_send(other.rank, Channel.REQUEST, notice))
