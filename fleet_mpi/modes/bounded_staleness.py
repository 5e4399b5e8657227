"""Bounded staleness: a dial between synchronous (0) and asynchronous (inf).

Pushes are applied as in asynchronous training, but the answer to a worker that is more than ``bound`` steps ahead of
the slowest worker still training is held back until that one has caught up. With 0 all workers take each step
together and go on with the same parameters; their gradients are applied one by one, in the order they came, not as
a mean. A worker that leaves holds nobody back.

How stale a gradient was is the number of other workers' pushes that were applied after its worker was given the
parameters. With n workers it is at most (n - 1) (2 bound + 1). Each server counts, and says so at the end.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, ClassVar

from fleet_mpi import notices
from fleet_mpi.modes import options
from fleet_mpi.modes.asynchronous import AsyncServer
from fleet_mpi.modes.base import Mode
from fleet_mpi.modes.sync import EachStepWorker

if TYPE_CHECKING:
    from fleet_mpi.parameter_server.inbox import Push
    from fleet_mpi.parameter_server.server import Server


class BoundedStalenessServer(AsyncServer):
    """The server half. ``staleness`` counts the pushes by how stale they were; ``held`` are {worker: since when}."""

    options: ClassVar[tuple[str, ...]] = ("bound",)

    def __init__(self, workers: int = 1, bound: float = 0) -> None:
        super().__init__(workers)
        self.bound = options.number("bound", bound, 0)
        self.staleness: Counter[int] = Counter()
        self.held: dict[int, float] = {}

    def start(self, server: Server) -> None:
        """Get ready to serve."""
        super().start(server)
        self.version = 0                           # pushes applied
        self.seen = [0] * len(server.inboxes)      # the version each worker was last given

    def applied(self, push: Push) -> None:
        """Count how stale the push was, and let go on who may."""
        self.staleness[self.version - self.seen[push.worker]] += 1
        self.version += 1
        # A worker that did not ask for parameters computes on with those it has: of these, its own push is none.
        self.seen[push.worker] += 1
        if push.wants_values:
            self.held[push.worker] = time.monotonic()
        super().applied(push)
        self._let_go()

    def answer(self, worker: int) -> None:
        """Give a worker the parameters, unless its push is held back."""
        if worker not in self.held:
            self.seen[worker] = self.version
            super().answer(worker)

    def on_leave(self, worker: int) -> None:
        """The slowest may be another one now."""
        self._let_go()
        if not self.server.active:
            notices.log().info("%s", self.report())

    def late(self, longest: float) -> list[int]:
        """The slowest workers, where one has been held back for too long."""
        if not self.held or time.monotonic() - min(self.held.values()) < longest:
            return []
        slowest = self._slowest()
        return sorted(worker for worker in self.server.active - set(self.held)
                      if self.server.applied[worker] == slowest)

    def report(self) -> str:
        """A sentence on how stale the gradients were."""
        total = sum(self.staleness.values())
        if not total:
            return f"server {self.server.index}: no push was applied"
        mean = sum(value * count for value, count in self.staleness.items()) / total
        counts = ", ".join(f"{value}: {count}" for value, count in sorted(self.staleness.items()))
        return (f"server {self.server.index}: {total} pushes were {mean:.2f} updates stale on average, "
                f"{max(self.staleness)} at most (staleness: pushes {counts})")

    def _slowest(self) -> int:
        return min((self.server.applied[worker] for worker in self.server.active), default=0)

    def _let_go(self) -> None:
        slowest = self._slowest()
        for worker in sorted(self.held):
            if self.server.applied[worker] - slowest <= self.bound:
                del self.held[worker]
                self.answer(worker)


MODE = Mode("bounded_staleness", EachStepWorker, BoundedStalenessServer,
            lambda config: not config.sync_mode and config.staleness >= 0,
            {"sync_mode": False}, {"bound": "staleness"}, in_step=True)
