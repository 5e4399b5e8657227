"""Synchronous training: every step of all workers together is one round.

A round's gradient is the sum over the workers that are still training, **in worker order**, times one over their
number; the update is the one a single process would make with it. A worker that has no more data leaves, and the
mean is over the others.
"""

import time

import numpy as np

from fleet_mpi.modes.base import Mode
from fleet_mpi.modes.each_step import EachStepWorker


class SyncServer:
    """The server half: collects a round piece by piece."""

    options = ()
    # A push waits for those of the other workers; one of them may be saving meanwhile, without it.
    applies_alone = False

    def __init__(self, workers=1):
        self.server = None

    def start(self, server):
        """Get ready to serve."""
        self.server = server
        # Whether pieces wait for the whole: small images, norms.
        self.is_whole = len(server.image.pieces) < 2 or server.table.needs_norms
        self._new_round()

    def _new_round(self):
        self.pushes, self.first_came = {}, None
        self.pieces_in = [0] * len(self.server.image.pieces)
        self.complete, self.updated = set(), set()   # workers, pieces
        self.mean_of, self.order = None, ()

    def on_piece(self, push, number):
        """A piece of one worker's gradients is here."""
        self._note(push)
        self.pieces_in[number] += 1
        if not self.is_whole:
            self._try_piece(number)

    def on_push(self, push):
        """All of one worker's gradients are here."""
        self._note(push)
        self.complete.add(push.worker)
        self._try_round()

    def on_leave(self, worker):
        """The round may be complete without this worker."""
        if self.pushes and not self.is_whole:
            for number in range(len(self.pieces_in)):
                self._try_piece(number)
        self._try_round()

    def on_pull(self, worker, header):
        """Parameters as the last round left them."""
        self.server.answer_values(self.server.inboxes[worker], self.server.table.params)

    def late(self, longest):
        """The workers that the others have been waiting for too long."""
        if self.first_came is None or time.monotonic() - self.first_came < longest:
            return []
        return sorted(self.server.active - self.complete)

    def _note(self, push):
        if push.worker not in self.pushes:
            self.pushes[push.worker] = push
            self.first_came = self.first_came or time.monotonic()

    def _try_piece(self, number):
        """Average, update and send a piece that all workers of the round have brought."""
        if (len(self.pushes) < len(self.server.active) or self.pieces_in[number] != len(self.pushes)
                or number in self.updated):
            return
        self._begin_update()
        self._average(number)
        for call in self.calls[number]:
            call()
        self.updated.add(number)
        for rank in self.receivers:
            self.server.send_params(rank, number)

    def _begin_update(self):
        """Nobody else can come into this round: put its pushes in order."""
        if self.mean_of is None:
            self.order = [self.pushes[worker] for worker in sorted(self.pushes)]
            self.mean_of = self.order[0]
            self.server.set_rates(self.mean_of)
            if not self.is_whole:
                self._begin_pieces()

    def _begin_pieces(self):
        wanting = [push.inbox for push in self.order if push.wants_values]
        for inbox in wanting:
            self.server.begin_values(inbox)
        self.calls, self.receivers = self.server.bound(self.mean_of), [inbox.rank for inbox in wanting]

    def _average(self, number):
        if len(self.order) > 1:
            average([push.image for push in self.order], self.server.image.ranges[number])

    def _try_round(self):
        if not self.pushes or len(self.complete) < len(self.server.active) or len(self.complete) < len(self.pushes):
            return
        self._begin_update()
        if not self.is_whole:
            self._end_round()
            return
        for number in range(len(self.pieces_in)):
            self._average(number)
        if self.server.table.needs_norms:
            key = (0, self.mean_of.header.step)
            update = self.server.update_with_norms(self.mean_of.image, self.order)
            self.server.exchange.run(key, update, self._end_round)
            return
        for calls in self.server.bound(self.mean_of):
            for call in calls:
                call()
        self._end_round()

    def _end_round(self):
        pushes = self.order
        if not self.server.table.needs_norms:
            self.server.update_rows(pushes)
        self._new_round()
        for push in pushes:
            self.server.applied[push.worker] = push.header.step
            if not push.wants_values:
                self.server.answer(push.inbox)
            elif not self.is_whole:
                push.inbox.release()
            else:
                self.server.answer_values(push.inbox, self.server.table.params)


def average(images, ranges):
    """Ranges (start, stop, dtype) of the first image become the mean: summed in order, then times 1/n."""
    for begin, end, dtype in ranges:
        total = images[0][begin:end].view(dtype)
        for image in images[1:]:
            np.add(total, image[begin:end].view(dtype), out=total)
        np.multiply(total, 1.0 / len(images), out=total)


MODE = Mode("sync", EachStepWorker, SyncServer, lambda config: True, {"sync_mode": True}, strategy={"a_sync": False},
            number=0, has_rounds=True, in_step=True)
