"""Training that makes room when asked to, and goes on from there when started again.

::

    preemption.watch()                      # every rank, servers too: from here on USR1 and TERM ask, and do not kill
    ...                                     # fleet.init, minimize, init_worker as ever
    with Preemption("model", save, load) as keeping:        # workers only
        for step in range(keeping.resume(), steps):
            exe.run(...)
            if keeping.stopping(step + 1):  # all workers stop after the same step, and the model was saved
                break
    fleet.stop_worker()
    keeping.leave_if_stopped()              # exit code 75: the batch script requeues the job

``save(path)`` and ``load(path)`` are what the script has for it: ``fleet.save_persistables``, ``fluid.io``.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from fleet_mpi import notices
from fleet_mpi.checkpoint.folders import versions
from fleet_mpi.checkpoint.folders.replacing import replacing
from fleet_mpi.errors import CheckpointDamaged
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.ranks import cluster, ending
from fleet_mpi.ranks.preemption import EXIT_CODE, SIGNALS, Agreement, release, requested, watch
from fleet_mpi.runtime import sessions

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["EXIT_CODE", "SIGNALS", "Preemption", "release", "requested", "watch"]

_STEPS = "__steps__"  # in a version: the steps of every worker, null of one that was done
_DONE = sys.maxsize   # steps of a worker that has none to make


class Preemption:
    """One worker's part in stopping, saving and resuming; all workers of a job make the same calls.

    Args:
        folder: where versions are kept (``step-120`` after 120 steps), seen by every worker's machine.
        save: ``save(path)`` writes the model into a folder; called by worker 0, while no worker trains.
        load: ``load(path)`` reads it; worker 0 first, then the others.
    """

    def __init__(self, folder: str, save: Callable[[str], object], load: Callable[[str], object]) -> None:
        watch()
        self.folder, self.save, self.load = str(folder), save, load
        self.stopped_after: int | None = None
        self._job = cluster.current() or cluster.join("worker")
        self._agreement: Agreement | None = None
        self._is_pointless = False

    def __enter__(self) -> Preemption:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if kind is None:
            self.finish()

    def resume(self) -> int:
        """Collective: load the newest version; returns the steps that this worker has behind it, 0 without a version.

        Worker 0 says which version it is. A worker that was done when it was saved gets a number beyond any step.
        """
        found = versions.newest(self.folder)
        path = self._job.all_gather(found.path if found else "")[0]
        if not path:
            return 0
        # The others take what worker 0 has handed to the servers, and nobody trains before all are there.
        if self._job.index == 0:
            self.load(path)
            notices.log().info("resumed from %s", path)
        self._job.barrier()
        if self._job.index != 0:
            self.load(path)
        self._job.barrier()
        return self._own_steps(path)

    def stopping(self, step: int) -> bool:
        """Collective, after every step, with the number of steps done: whether the job stops here; then it is saved.

        False where worker 0, which saves for all, is done already: the others train to their end.
        """
        if self._agreement is None:
            self._agreement = self._new_agreement()
        if self._is_pointless or not self._agreement.reached(step, requested()):
            return False
        session = sessions.session_of(global_scope())
        if session is not None:
            session.flush()
        steps = self._agreement.gather(step)
        if 0 in self._agreement.left:
            self._is_pointless = True
            notices.log().warning("asked to stop after step %d, but worker 0, which would save, is done: going on",
                                  step)
            return False
        if self._job.index == 0:
            self._save({**steps, 0: step})
        # Who leaves early with a code takes the others with it.
        self._agreement.gather(step)
        self.stopped_after = step
        return True

    def finish(self) -> None:
        """This worker has made its last step: the others need not wait for it any more. May be called again."""
        if self._agreement is None:
            self._agreement = self._new_agreement()
        self._agreement.leave()

    def leave_if_stopped(self) -> None:
        """End this process with exit code 75 if the job was stopped; after the goodbye to the servers."""
        if self.stopped_after is not None:
            self.finish()
            # No failure, which would end the servers on the spot.
            ending.agree(EXIT_CODE)
            sys.exit(EXIT_CODE)

    def _new_agreement(self) -> Agreement:
        if self._job.size == 1:
            return Agreement(None)
        session = sessions.session_of(global_scope())
        in_step = session is None or session.distribution.mode.in_step
        made = Agreement(self._job.role_comm, lambda rank: str(self._job.workers[rank]), in_step)
        cluster.at_exit(made.close)
        return made

    def _save(self, steps: dict[int, int]) -> None:
        counts = [steps.get(worker) for worker in range(len(self._job.workers))]

        def write(path: str) -> None:
            self.save(path)
            with replacing(os.path.join(path, _STEPS)) as stream:
                stream.write(json.dumps(counts).encode())
        made = versions.save(self.folder, steps[0], write)
        notices.log().info("asked to stop: saved %s", made.path)

    def _own_steps(self, path: str) -> int:
        """What this worker had done; another number of workers goes on where worker 0 was."""
        try:
            with open(os.path.join(path, _STEPS), "rb") as stream:
                counts = json.load(stream)
            own = counts[self._job.index] if len(counts) == len(self._job.workers) else counts[0]
            return _DONE if own is None else int(own)
        except (OSError, ValueError, TypeError, LookupError) as error:
            raise CheckpointDamaged(f"{path}: cannot read the steps of its workers from {_STEPS}: {error}; remove this "
                                    f"version to take the one before") from None
