"""Geo training: workers train on their own copies, with their own optimizer, and exchange what these moved by.

After every ``k_steps`` steps, between two steps, with w the worker's copy, N the number of workers and old what the
worker knows of the servers' parameters::

    delta = (w - old) / N;   old += delta;   the servers add delta to theirs and answer with p
    w += p - old;   old = p

Nobody waits for another worker. The steps that are left at the end are exchanged too. A table with a height is a whole
variable in each worker. Of one that grows a worker has the rows that it uses (``own_rows``), and the rows that it has
updated since the last exchange are exchanged by the same formulas; only they travel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fleet_mpi.modes import options
from fleet_mpi.modes.asynchronous import AsyncServer
from fleet_mpi.modes.base import Mode
from fleet_mpi.modes.own_rows import OwnRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fleet_mpi.arrays import Rows
    from fleet_mpi.parameter_server.client import Client
    from fleet_mpi.parameter_server.flat import Range
    from fleet_mpi.parameter_server.inbox import Push


class GeoWorker:
    """The worker half: ``after_backward`` comes after the worker's own update. The client's ``grads`` are scratch."""

    options: ClassVar[tuple[str, ...]] = ("k_steps",)

    def __init__(self, client: Client, workers: int = 1, k_steps: int = 100) -> None:
        self.client = client
        if not client.description.row_tables:
            # The servers add, and compile nothing; the first exchange may be long after the first step.
            client.first_step_s = 0.0
        self.k_steps = options.whole("k_steps", k_steps, 1)
        self.share = 1.0 / options.whole("workers", workers, 1)
        self.rows = OwnRows(client, self.share)
        self.steps = 0
        # Of zeros: what lies between two variables is computed with too, and comes from no server.
        self.old, self.pulled = client.layout.new_array(), client.layout.new_array()
        self.knows_servers = False

    def restart(self) -> None:
        """The copy was replaced by the servers' parameters."""
        self.old[...] = self.client.params
        self.knows_servers = True
        self.rows.restart()

    def after_backward(self, rows: Sequence[Rows | None] = ()) -> None:
        """Count a step, whose row gradients update the worker's rows; exchange at every ``k_steps``-th."""
        if not self.knows_servers:
            # The copy began elsewhere: as the servers did, if the job has one seed.
            self.client.collect(self.client.pull(into=self.old))
            self.knows_servers = True
        if self.rows.tables:
            self.rows.update(rows)
        self.steps += 1
        if self.steps >= self.k_steps:
            self._exchange()

    def finish(self) -> None:
        """Exchange what the last steps moved."""
        if self.steps:
            self._exchange()

    def _exchange(self) -> None:
        delta, ranges = self.client.grads, self.client.layout.ranges
        for w, old, change in _lines(ranges, self.client.params, self.old, delta):
            np.subtract(w, old, out=change)
            np.multiply(change, self.share, out=change)
            np.add(old, change, out=old)
        self.client.collect(self.client.push_pull(self.rows.moved(), self.steps, into=self.pulled))
        self.steps = 0
        for w, old, new, change in _lines(ranges, self.client.params, self.old, self.pulled, delta):
            np.subtract(new, old, out=change)
            np.add(w, change, out=w)
        self.old, self.pulled = self.pulled, self.old
        self.rows.settle()


class GeoServer(AsyncServer):
    """The server half: adds. The servers have no optimizer, whatever the recipes say."""

    def update(self, push: Push) -> None:
        """Add what a worker's copies moved by."""
        self.server.update_row_tables([push])   # which refuses before anything has changed
        for ranges in self.server.image.ranges:
            for param, delta in _lines(ranges, self.server.dense.params, push.image):
                np.add(param, delta, out=param)
        self.applied(push)


def _lines(ranges: Iterable[Range], *flats: np.ndarray) -> Iterator[list[np.ndarray]]:
    """Of every range of one type the elements in each array."""
    for start, stop, dtype in ranges:
        yield [flat[start:stop].view(dtype) for flat in flats]


MODE = Mode("geo", GeoWorker, GeoServer, lambda config: config.geo_sgd_mode,
            {"sync_mode": False, "geo_sgd_mode": True}, {"k_steps": "geo_sgd_need_push_nums"}, {"k_steps": 1},
            {"a_sync": True}, number=3, servers_update=False)
