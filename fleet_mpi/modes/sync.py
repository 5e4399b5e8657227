"""Synchronous training: every step of all workers together is one round.

A round's gradient is the sum over the workers that are still training, **in worker order**, times one over their
number; the update is the one a single process would make with it. A worker that has no more data leaves, and the
mean is over the others.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from fleet_mpi.modes.base import Mode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet_mpi.arrays import Rows
    from fleet_mpi.parameter_server.client import Client
    from fleet_mpi.parameter_server.inbox import Push
    from fleet_mpi.parameter_server.server import Server
    from fleet_mpi.wire.protocol import Header


class EachStepWorker:
    """The worker half, also of other modes that exchange after every step: the server half decides when to answer.

    Pushes, and waits for the parameters: the round's (sync), or the servers' when this worker may go on.
    """

    options: ClassVar[tuple[str, ...]] = ()

    def __init__(self, client: Client, workers: int = 1) -> None:
        self.client = client

    def after_backward(self, rows: Sequence[Rows | None] = ()) -> None:
        """One exchange; the parameters are the servers' when it returns."""
        self.client.collect(self.client.push_pull(rows))

    def restart(self) -> None:
        """The parameters were replaced from outside: nothing is kept of the old ones."""

    def finish(self) -> None:
        """Nothing is left to send."""


class SyncServer:
    """The server half: collects a round piece by piece."""

    options: ClassVar[tuple[str, ...]] = ()
    # A push waits for those of the other workers; one of them may be saving meanwhile, without it.
    applies_alone = False

    server: Server

    def __init__(self, workers: int = 1) -> None:
        pass

    def start(self, server: Server) -> None:
        """Get ready to serve."""
        self.server = server
        # Whether pieces wait for the whole: small images, norms.
        self.is_whole = len(server.image.pieces) < 2 or server.needs_norms
        self._new_round()

    def _new_round(self) -> None:
        self.pushes: dict[int, Push] = {}
        self.first_came: float | None = None
        self.pieces_in = [0] * len(self.server.image.pieces)
        self.complete: set[int] = set()   # workers
        self.updated: set[int] = set()    # pieces
        self.order: list[Push] = []

    def on_piece(self, push: Push, number: int) -> None:
        """A piece of one worker's gradients is here."""
        self._note(push)
        self.pieces_in[number] += 1
        if not self.is_whole:
            self._try_piece(number)

    def on_push(self, push: Push) -> None:
        """All of one worker's gradients are here."""
        self._note(push)
        self.complete.add(push.worker)
        self._try_round()

    def on_leave(self, worker: int) -> None:
        """The round may be complete without this worker."""
        if self.pushes and not self.is_whole:
            for number in range(len(self.pieces_in)):
                self._try_piece(number)
        self._try_round()

    def on_pull(self, worker: int, header: Header) -> None:
        """Parameters as the last round left them."""
        self.server.answer_values(self.server.inboxes[worker], self.server.dense.params)

    def late(self, longest: float) -> list[int]:
        """The workers that the others have been waiting for too long."""
        if self.first_came is None or time.monotonic() - self.first_came < longest:
            return []
        return sorted(self.server.active - self.complete)

    def _note(self, push: Push) -> None:
        if push.worker not in self.pushes:
            self.pushes[push.worker] = push
            self.first_came = self.first_came or time.monotonic()

    def _try_piece(self, number: int) -> None:
        """Average, update and send a piece that all workers of the round have brought."""
        if (len(self.pushes) < len(self.server.active) or self.pieces_in[number] != len(self.pushes)
                or number in self.updated):
            return
        self._begin_update()
        self.server.dense.update_piece(self.parts, number)
        self.updated.add(number)
        for rank in self.receivers:
            self.server.send_params(rank, number)

    def _begin_update(self) -> None:
        """Nobody else can come into this round: put its pushes in order."""
        if not self.order:
            self.order = [self.pushes[worker] for worker in sorted(self.pushes)]
            self.server.set_rates(self.order[0])
            if not self.is_whole:
                self._begin_pieces()

    def _begin_pieces(self) -> None:
        wanting = [push.inbox for push in self.order if push.wants_values]
        for inbox in wanting:
            self.server.begin_values(inbox)
        self.parts, self.receivers = [push.parts[0] for push in self.order], [inbox.rank for inbox in wanting]

    def _try_round(self) -> None:
        if not self.pushes or len(self.complete) < len(self.server.active) or len(self.complete) < len(self.pushes):
            return
        self._begin_update()
        if self.is_whole:
            self.server.update((0, self.order[0].header.step), self.order, self._end_round)
        else:
            self.server.update_row_tables(self.order)
            self._end_round()

    def _end_round(self) -> None:
        pushes = self.order
        self._new_round()
        for push in pushes:
            self.server.applied[push.worker] = push.header.step
            if not push.wants_values:
                self.server.answer(push.inbox)
            elif not self.is_whole:
                push.inbox.release()
            else:
                self.server.answer_values(push.inbox, self.server.dense.params)


MODE = Mode("sync", EachStepWorker, SyncServer, lambda config: True, {"sync_mode": True}, strategy={"a_sync": False},
            number=0, has_rounds=True, in_step=True)
