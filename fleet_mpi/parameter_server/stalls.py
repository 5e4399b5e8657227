"""Whom a server calls late: the worker or server that others wait for, by the rules of ``ranks.liveness``.

Not a worker that is itself held up: it says so (WAITING) when it has waited for another server for long, and names
that one in its own time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleet_mpi.errors import Stalled
from fleet_mpi.ranks import waiting
from fleet_mpi.ranks.liveness import first_step_limit_s, report_by_first
from fleet_mpi.wire.protocol import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

    from fleet_mpi.parameter_server.server import Server

_OF_SAVING = (Kind.FREEZE, Kind.COPY, Kind.FETCH, Kind.STORE, Kind.THAW)


class StallDetector:
    """One server's. ``first_step_s`` is 0 where nothing is compiled."""

    def __init__(self, server: Server, first_step_s: float = 0.0) -> None:
        self.server, self.first_step_s = server, first_step_s
        self.greeted: set[int] = set()
        self.held_up: set[int] = set()
        self.looked, self.trusted_until = time.monotonic(), 0.0
        self.savers_heard: dict[int, float] = {}   # {worker: when a request of its save or load came last}
        self.begin()

    def begin(self) -> None:
        """Read the deadline; before every wait."""
        self.deadline_s = waiting.deadline_s()

    def note(self, worker: int, kind: Kind) -> None:
        """A request of this kind came from a worker."""
        if kind in _OF_SAVING:
            self.savers_heard[worker] = time.monotonic()
        if kind == Kind.WAITING:
            self.held_up.add(worker)
        else:
            self.held_up.discard(worker)
        if kind == Kind.HELLO:
            self.greeted.add(worker)

    def look(self, idle_s: float = 0.0) -> None:
        """Raise Stalled, and tell the workers that wait, if somebody is late."""
        now = time.monotonic()
        if self._must_look_longer(now):
            return
        server, limit_s = self.server, self.deadline_s
        if server.exchange.is_first:
            limit_s = first_step_limit_s(limit_s, self.first_step_s)
        servers = server.exchange.late(limit_s)
        if servers:
            self._give_up(f"has waited {limit_s:.1f} s for {', '.join(servers)}", server.active)
        self._check_savers(now)
        self._check_workers()

    def _must_look_longer(self, now: float) -> bool:
        """Whether this server stood still itself, less than a deadline ago: what came meanwhile is not yet taken."""
        if now - self.looked > waiting.STOOD_STILL_S:
            self.trusted_until = now + self.deadline_s
        self.looked = now
        return now < self.trusted_until

    def _check_savers(self, now: float) -> None:
        """Workers that save or load hold up those whose pushes are parked, and those that wait to save or load: they
        only see that no server answers. A saver that waits itself, for another server, says so."""
        snapshots = self.server.snapshots
        held_up = snapshots.held_up()
        if held_up:
            late = [self.server.inboxes[worker].name for worker in sorted(snapshots.freezers - self.held_up)
                    if now - self.savers_heard[worker] > self.deadline_s]
            if late:
                self._give_up(f"the others have waited {self.deadline_s:.1f} s for {', '.join(late)}, which "
                              f"{'is' if len(late) == 1 else 'are'} saving or loading", held_up)

    def _check_workers(self) -> None:
        server, limit_s = self.server, self.deadline_s
        late = set(server.mode.late(limit_s)) - self.held_up - server.snapshots.held_up() - self._reading()
        beginning = {worker for worker in late & self.greeted if not server.applied[worker]}
        late -= beginning
        if not late and beginning:
            limit_s = first_step_limit_s(limit_s, self.first_step_s)
            late = beginning & set(server.mode.late(limit_s))
        if late:
            names = ", ".join(server.inboxes[worker].name for worker in sorted(late))
            self._give_up(f"the others have waited {limit_s:.1f} s for {names}", server.active - late)

    def _reading(self) -> set[int]:
        """The workers that save, and have read of a copy or finished a deadline ago at most: what they read has to be
        written, and their next step to be computed."""
        now = time.monotonic()
        return {worker for worker, heard in self.savers_heard.items() if now - heard <= self.deadline_s}

    def _give_up(self, what: str, workers: Iterable[int]) -> NoReturn:
        server = self.server
        # All servers wait for the same.
        error = report_by_first(Stalled(f"{server.name_of(server.transport.rank)}: {what} (FLAGS_rpc_deadline sets it "
                                        f"in ms)"), server.index)
        server.tell(error, workers)
        raise error
