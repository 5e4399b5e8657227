"""Asynchronous training: nobody waits for another worker.

The servers apply every push when it arrives, whole and never divided by the number of workers. A worker has a
communicator without a thread: it is moved on at the end of every step, sends and receives go on meanwhile. What it
can be told (the names are those of ``a_sync_configs`` and of the original's communicator flags):

``max_merge_var_num``
    The most batches whose gradients are merged into one push. They are summed, in their order; row gradients by id.
``is_sgd_optimizer``
    False: the merged sum is divided by the number of batches in it.
``send_wait_times``
    A merge that is not full is sent when this many times 10 ms have passed since its last gradient. It is looked at
    when a step ends: with longer steps, then.
``send_queue_size``
    The most batches whose gradients may wait to be sent. When so many wait, the oldest merge is sent, full or not,
    and the worker waits for a request to be answered first where too many are under way.
``thread_pool_size``
    The most requests (pushes and pulls) of this worker that may be under way.
``independent_recv_thread``
    False: every push asks for the parameters, and the worker waits for them (not for other workers). True: pushes
    are not waited for; parameters are asked for apart, arrive beside the present ones and take their place when a
    step ends and they are there.
``min_send_grad_num_before_recv``
    With ``independent_recv_thread``: ask for parameters when more batches than this were sent since the last time.

Parameters that come apart are older the more a worker may have unsent and under way: where steps are short beside
messages, a short queue and few requests keep it from running ahead. At the end everything is sent and its application
waited for. Every push has the number of its batches with it, by which schedules move on.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.modes import options
from fleet_mpi.modes.base import Mode
from fleet_mpi.modes.merging import Merged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet_mpi.arrays import Rows
    from fleet_mpi.parameter_server.client import Client
    from fleet_mpi.parameter_server.inbox import Push
    from fleet_mpi.parameter_server.requests import Ticket
    from fleet_mpi.parameter_server.server import Server
    from fleet_mpi.wire.protocol import Header

WAIT_UNIT = 0.01  # seconds: what send_wait_times counts


class _Request(NamedTuple):
    """A request under way: a push with the gradients it reads, or a pull (None)."""

    ticket: Ticket
    merged: Merged | None


class AsyncWorker:
    """The worker half: merges gradients while pushes are under way."""

    options: ClassVar[tuple[str, ...]] = (
        "max_merge_var_num", "send_queue_size", "independent_recv_thread", "min_send_grad_num_before_recv",
        "thread_pool_size", "send_wait_times", "is_sgd_optimizer")

    def __init__(self, client: Client, workers: int = 1, max_merge_var_num: int = 1, send_queue_size: int = 16,
                 independent_recv_thread: bool = False, min_send_grad_num_before_recv: int = 1,
                 thread_pool_size: int = 1, send_wait_times: int = 1, is_sgd_optimizer: bool = True,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.client, self.clock = client, clock
        self.most_merged = options.whole("max_merge_var_num", max_merge_var_num, 1)
        self.most_unsent = options.whole("send_queue_size", send_queue_size, 1)
        self.pulls_apart = options.yes_or_no("independent_recv_thread", independent_recv_thread)
        self.sent_before_pull = options.whole("min_send_grad_num_before_recv", min_send_grad_num_before_recv, 0)
        self.most_requests = options.whole("thread_pool_size", thread_pool_size, 1)
        self.send_wait_s = options.whole("send_wait_times", send_wait_times, 0) * WAIT_UNIT
        self.sums = options.yes_or_no("is_sgd_optimizer", is_sgd_optimizer)
        self.unsent: deque[Merged] = deque()
        self.requests: deque[_Request] = deque()
        self.spare: list[Merged] = []
        self.sent = 0        # batches since parameters were last asked for
        self.is_stale = False  # whether something was sent since
        self.shadow: np.ndarray | None = None

    def after_backward(self, rows: Sequence[Rows | None] = ()) -> None:
        """Take the step's gradients over; waits only where the queue is full, or for parameters if told so."""
        if not self.pulls_apart and self.most_merged == 1:
            # Nothing waits and nothing is merged: no copy of the gradients is needed.
            self.client.collect(self.client.push_pull(rows))
            return
        self._move_on()
        while self._unsent_batches() >= self.most_unsent:
            if not self._send_oldest():
                self._settle_oldest()
        self._merge(rows)
        self._move_on()

    def restart(self) -> None:
        """The parameters were replaced from outside: those still to come are older. Gradients are kept."""
        while self.requests:
            request = self.requests.popleft()
            self.client.collect(request.ticket)
            self._reuse(request.merged)

    def finish(self) -> None:
        """Send all that waits, wait until it is applied, and take the parameters it led to."""
        while self.unsent:
            if not self._send_oldest():
                self._settle_oldest()
        while self.requests:
            self._settle_oldest()
        if self.is_stale:
            self.client.collect(self.client.pull())
            self.sent, self.is_stale = 0, False

    # ------------------------------------------------------------------ gradients

    def _unsent_batches(self) -> int:
        return sum(merged.count for merged in self.unsent)

    def _merge(self, rows: Sequence[Rows | None]) -> None:
        if not self.unsent or self.unsent[-1].count >= self.most_merged:
            self.unsent.append(self.spare.pop() if self.spare else Merged(self.client.layout))
        self.unsent[-1].add(self.client.grads, rows, self.clock())

    def _reuse(self, merged: Merged | None) -> None:
        if merged is not None:
            merged.clear()
            self.spare.append(merged)

    # ------------------------------------------------------------------ requests

    def _move_on(self) -> None:
        """Do what can be done without waiting."""
        while self.requests and self.client.is_answered(self.requests[0].ticket):
            self._settle_oldest()
        while self._wants_parameters() and self._may_ask():
            self._ask_for_parameters()
        while self.unsent and self._is_ready(self.unsent[0]) and self._send_oldest():
            while self._wants_parameters() and self._may_ask():
                self._ask_for_parameters()

    def _is_ready(self, merged: Merged) -> bool:
        return merged.count >= self.most_merged or self.clock() - merged.last >= self.send_wait_s

    def _may_ask(self) -> bool:
        return len(self.requests) < self.most_requests

    def _wants_parameters(self) -> bool:
        """One pull at a time: there is one place for its answer."""
        return self.pulls_apart and self.sent > self.sent_before_pull and all(
            request.merged is not None for request in self.requests)

    def _send_oldest(self) -> bool:
        """Send the oldest merge; False where too many requests are under way."""
        if not self._may_ask():
            return False
        merged = self.unsent.popleft()
        if not self.sums:
            merged.average()
        if self.pulls_apart:
            ticket = self.client.push(merged.rows, merged.count, merged.flat)
            self.requests.append(_Request(ticket, merged))
            self.sent, self.is_stale = self.sent + merged.count, True
        else:
            self.client.collect(self.client.push_pull(merged.rows, merged.count, merged.flat))
            self._reuse(merged)
        return True

    def _ask_for_parameters(self) -> None:
        if self.shadow is None:
            self.shadow = arrays.empty(self.client.layout.nbytes, np.uint8)
        self.requests.append(_Request(self.client.pull(into=self.shadow), None))
        self.sent, self.is_stale = 0, False

    def _settle_oldest(self) -> None:
        """Wait for the oldest request: servers answer a worker in the order it asked."""
        request = self.requests.popleft()
        self.client.collect(request.ticket)
        if request.merged is None:
            self.client.params[...] = self.shadow
        self._reuse(request.merged)


class AsyncServer:
    """The server half: applies a push when all of it is there, so that none is ever half applied.

    ``batches`` counts those applied per worker, as ``server.applied`` counts the pushes. Where norms of whole
    variables are needed, other pushes may be applied between the norm and the update that it is for.
    """

    options: ClassVar[tuple[str, ...]] = ()
    applies_alone = True

    server: Server

    def __init__(self, workers: int = 1) -> None:
        pass

    def start(self, server: Server) -> None:
        """Get ready to serve."""
        self.server = server
        self.batches = [0] * len(server.inboxes)

    def on_piece(self, push: Push, number: int) -> None:
        """A piece alone is not applied."""

    def on_push(self, push: Push) -> None:
        """Apply one worker's gradients."""
        self.update(push)

    def update(self, push: Push) -> None:
        """Change the tables by a push, then call ``applied``: at once, or when the norms are known."""
        self.server.set_rates(push, steps=push.header.count)
        self.server.update((push.worker, push.header.step), [push], lambda: self.applied(push))

    def applied(self, push: Push) -> None:
        """A push is applied: the counts, the answer."""
        self.server.applied[push.worker] = push.header.step
        self.batches[push.worker] += push.header.count
        if push.wants_values:
            self.answer(push.worker)
        else:
            self.server.answer(push.inbox)

    def answer(self, worker: int) -> None:
        """Give a worker the parameters."""
        self.server.answer_now(self.server.inboxes[worker])

    def on_pull(self, worker: int, header: Header) -> None:
        """Parameters as they are at the moment."""
        self.answer(worker)

    def on_leave(self, worker: int) -> None:
        """Nobody waits for it."""

    def late(self, longest: float) -> list[int]:
        """Nobody waits for another worker."""
        return []


def _is_asked_for(config: Any) -> bool:
    return not config.sync_mode and config.runtime_split_send_recv and not config.half_async


MODE = Mode("async", AsyncWorker, AsyncServer, _is_asked_for,
            {"sync_mode": False, "runtime_split_send_recv": True}, strategy={"a_sync": True})
