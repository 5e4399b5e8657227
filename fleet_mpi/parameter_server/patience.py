"""Whom a server calls late: the worker or server that others wait for, once the deadline is over.

Not a worker that is itself held up: it says so (WAITING) when it has waited for another server for long, and names
that one in its own time. And not one in its first step, where kernels are compiled, before ``FIRST_STEP_S``.
"""

import time

from fleet_mpi.errors import Stalled
from fleet_mpi.wire import waiting
from fleet_mpi.wire.protocol import Kind

FIRST_STEP_S = 60.0  # compiling took 15 s with more ranks than cores; a deadline that is longer stays what it is
_OF_SAVING = (Kind.FREEZE, Kind.COPY, Kind.FETCH, Kind.STORE, Kind.THAW)
LOOK_EVERY_S = 0.02  # an idle server looks for messages more often than for the time


def of_first_step(seconds, first_step_s):
    """How long a first step is waited for, where others are waited for so many ``seconds``."""
    return max(seconds, first_step_s)


class Patience:
    """One server's. ``first_step_s`` is 0 where nothing is compiled."""

    def __init__(self, server, first_step_s=0.0):
        self.server, self.first_step_s = server, first_step_s
        self.greeted, self.held_up = set(), set()
        self.looked, self.trusted_until = time.monotonic(), 0.0
        self.savers_heard = {}   # {worker: when a request of its save or load came last}

    def note(self, worker, kind):
        """A request of this kind came from a worker."""
        if kind in _OF_SAVING:
            self.savers_heard[worker] = time.monotonic()
        if kind == Kind.WAITING:
            self.held_up.add(worker)
        else:
            self.held_up.discard(worker)
        if kind == Kind.HELLO:
            self.greeted.add(worker)

    def check(self):
        """Raise Stalled, and tell the workers that wait, if somebody is late."""
        now = time.monotonic()
        if now - self.looked < LOOK_EVERY_S or self._must_look_longer(now):
            return
        server, waited = self.server, waiting.deadline()
        if server.exchange.is_first:
            waited = of_first_step(waited, self.first_step_s)
        servers = server.exchange.late(waited)
        if servers:
            self._give_up(f"has waited {waited:.1f} s for {', '.join(servers)}", server.active)
        self._check_savers(waiting.deadline(), now)
        self._check_workers(waiting.deadline())

    def _must_look_longer(self, now):
        """Whether this server stood still itself, less than a deadline ago: what came meanwhile is not yet taken."""
        if now - self.looked > waiting.STOOD_STILL:
            self.trusted_until = now + waiting.deadline()
        self.looked = now
        return now < self.trusted_until

    def _check_savers(self, deadline, now):
        """Workers that save or load hold up those whose pushes are parked, and those that wait to save or load: they
        only see that no server answers. A saver that waits itself, for another server, says so."""
        snapshots = self.server.snapshots
        held_up = snapshots.held_up()
        if held_up:
            late = [self.server.inboxes[worker].name for worker in sorted(snapshots.freezers - self.held_up)
                    if now - self.savers_heard[worker] > deadline]
            if late:
                self._give_up(f"the others have waited {deadline:.1f} s for {', '.join(late)}, which "
                              f"{'is' if len(late) == 1 else 'are'} saving or loading", held_up)

    def _check_workers(self, deadline):
        server = self.server
        late = set(server.mode.late(deadline)) - self.held_up - server.snapshots.held_up() - self._reading(deadline)
        beginning = {worker for worker in late & self.greeted if not server.applied[worker]}
        late -= beginning
        if not late and beginning:
            deadline = of_first_step(deadline, self.first_step_s)
            late = beginning & set(server.mode.late(deadline))
        if late:
            names = ", ".join(server.inboxes[worker].name for worker in sorted(late))
            self._give_up(f"the others have waited {deadline:.1f} s for {names}", server.active - late)

    def _reading(self, deadline):
        """The workers that read copies, for a save, and were heard of in time."""
        now = time.monotonic()
        return {worker for worker in self.server.snapshots.copies if now - self.savers_heard[worker] <= deadline}

    def _give_up(self, what, workers):
        server = self.server
        error = Stalled(f"{server.name_of(server.transport.rank)}: {what} (FLAGS_rpc_deadline sets it in ms)")
        error.told_elsewhere = server.index > 0  # all servers wait for the same
        server.tell(error, workers)
        raise error
