"""An equal worker's part in a job without servers, over flat arrays.

Gradients lie in one flat array, in the order in which they are made, so that a bucket needs no copy to be summed. Its
sum begins as soon as its last gradient is ``ready``; ``wait`` ends the step.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fleet_mpi import arrays, settings
from fleet_mpi.arrays import Rows
from fleet_mpi.collective import choosing, shared_memory
from fleet_mpi.collective.buckets import FlatGradients, size_of
from fleet_mpi.collective.group import Group
from fleet_mpi.errors import UsageError
from fleet_mpi.parameter_server import agreement
from fleet_mpi.ranks import cluster, meeting
from fleet_mpi.ranks.liveness import FIRST_STEP_S, Liveness
from fleet_mpi.ranks.manual_start import refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any

    from fleet_mpi.arrays import Array
    from fleet_mpi.collective.buckets import Bucket, Gradient
    from fleet_mpi.collective.choosing import Options
    from fleet_mpi.collective.reducer import Reducer, Reduction
    from fleet_mpi.ranks.cluster import Cluster

MUST_AGREE = "FLEET_MPI_ALLREDUCE", "FLEET_MPI_SHARED_MEMORY"
_groups: dict[int, Group] = {}  # this process's, by the number of communicators: they are few, and kept


class EqualTerms(NamedTuple):
    """What the workers of a job without servers agree on: plain data."""

    workers: int
    worker: int | None                 # this worker's number; None: by rank order
    gradients: list[Gradient]          # in the order in which they are made
    buckets: list[Bucket]
    options: Options
    fingerprint: dict[str, Any]        # what must be the same on all ranks, by name


class EqualConnection:
    """One worker's part in the sums of some gradients."""

    def __init__(self, terms: EqualTerms, group: Group) -> None:
        self.terms, self.group, self.cluster = terms, group, cluster.current()
        self.bucket_of = {name: number for number, one in enumerate(terms.buckets) for name in one.names}
        self.xp: ModuleType | None = None
        self.reducers: Sequence[Reducer] = []
        self.flat: Any = None  # FlatGradients, once it is known where gradients lie
        self.steps, self.gathers = 0, False
        group.first_step_s = FIRST_STEP_S
        self._begin_step()

    def _begin_step(self) -> None:
        self.lacking = [len(one.names) for one in self.terms.buckets]
        self.under_way: list[Reduction] = []

    def require_between_steps(self) -> None:
        """Refuse to begin a step if the one before was left in the middle."""
        if any([has != len(one.names) for has, one in zip(self.lacking, self.terms.buckets)]):
            raise UsageError(f"{self.group.name_of(self.group.index)}: step {self.steps} was left by an error while "
                             f"gradients were on their way to the other workers: none of them can go on; begin again "
                             f"from what was saved")

    def begin_step(self) -> Callable[[], None] | None:
        """Before a step. On a device returns ``catch_up``, to be called before the host waits for the device."""
        self.require_between_steps()
        self.settle()
        if len(self.group.left_behind) > len(self.terms.buckets):  # nothing was fetched for two steps
            self.catch_up()
        return None if self.xp is np else self.catch_up

    def catch_up(self) -> None:
        """Wait until the device has the sums of the steps before; Stalled or PeerLost where it never will."""
        self.group.catch_up(f"the gradients of step {self.steps - 1}")
        self.group.first_step_s = 0.0

    def move_to(self, xp: ModuleType) -> bool:
        """Collective: let the gradients lie where ``xp`` computes, and be summed from there; False if they do
        already."""
        if self.xp is xp:
            return False
        self.xp, self.reducers = xp, []
        # On a device the choice can wait: programs are planned here, one after the other where workers are threads.
        memory = self.settle() if xp is np else None
        self.flat = FlatGradients(self.terms.gradients, self.terms.buckets, xp, memory)
        return True

    def settle(self) -> np.ndarray | None:
        """Collective, unless it is settled: choose what sums the gradients; returns memory for them, if it has some."""
        if self.reducers or self.xp is None:
            return None
        self.reducers, memory = shared_memory.shared_reducers(
            choosing.choose(self.terms, self.group, self.xp), self.group, size_of(self.terms.buckets), self.xp)
        return memory

    def ready(self, name: str) -> None:
        """A gradient was made; with the last one of its bucket the bucket is on its way."""
        number = self.bucket_of[name]
        self.lacking[number] -= 1
        if not self.lacking[number]:
            self.under_way.append(self.reducers[number % len(self.reducers)].start(self.flat.lines[number]))
        for one in self.under_way:
            one.advance()

    def wait(self) -> None:
        """Until every gradient is the sum over all workers, for what is computed from now on."""
        self.group.finish(self.under_way, f"the gradients of step {self.steps}")
        self._begin_step()
        self.steps += 1
        if self.gathers or not self.group.left_behind:  # with rows the updates wait for the device
            self.catch_up()
        if self.cluster is not None:
            self.cluster.progress = self.steps

    def gather_rows(self, rows: Rows) -> Rows:
        """The workers' row gradients, one behind the other in worker order: updates add up what repeats."""
        xp = arrays.module_of(rows.values)
        parts = self.gather([arrays.to_host(rows.ids), arrays.to_host(rows.values)])
        ids, values = (arrays.to_module(np.concatenate([part[i] for part in parts]), xp) for i in range(2))
        return Rows(ids, values, rows.height)

    def gather(self, parts: list[np.ndarray]) -> list[list[np.ndarray]]:
        """Every worker's list of host arrays, by worker, while buckets go on; only their first dimension may differ."""
        self.gathers = True  # what was on a device is read by the host: sums are caught up with before the updates
        return self.group.gather(parts, self.under_way)

    def sum_now(self, array: Array) -> None:
        """Replace a contiguous array by the sum over all workers, at once: for what is in no bucket."""
        self.move_to(arrays.module_of(array))
        self.settle()
        self.under_way.append(self.reducers[0].start(array))
        what = f"what is summed in step {self.steps}"
        self.group.finish(self.under_way, what)
        self.under_way.clear()
        self.group.catch_up(what)  # who asks for it at once waits for the device next

    def broadcast(self, found: Sequence[Array]) -> None:
        """Let these arrays have worker 0's values."""
        hosts = [np.ascontiguousarray(arrays.to_host(one)) for one in found]
        self.group.broadcast(hosts)
        for array, host in zip(found, hosts):
            array[...] = arrays.to_module(host, arrays.module_of(array))


def join(terms: EqualTerms) -> Group:
    """Collective: all processes of the job as workers, each with its communicators; they must run the same program."""
    joined = cluster.join("worker", terms.worker, workers=terms.workers, servers=[])
    if joined.size == 1:
        if terms.workers > 1:
            raise refusal("worker", joined.index, terms.workers, [])
        return Group(0, [], 1)
    joined.takes_part = True
    return group_among(joined, terms.fingerprint, terms.options.comms)


def group_among(joined: Cluster, fingerprint: dict[str, Any], count: int = 1) -> Group:
    """Collective, workers: those of a joined job, whether or not it has servers, each with communicators of its own."""
    if joined.size == 1:
        return Group(0, [], 1)
    liveness = watch_others()
    job = _agree(fingerprint, joined)
    if count not in _groups:
        comms = [joined.role_comm.Dup() for _ in range(count)]
        names = [str(one) for one in joined.workers]
        _groups[count] = Group.over_mpi(joined.index, comms, names.__getitem__, liveness)
        _groups[count].hosts, _groups[count].job = [one.host for one in joined.workers], job
    return _groups[count]


def watch_others() -> Liveness | None:
    """Collective: from now on the workers of a job without servers notice when one of them ends."""
    joined = cluster.current()
    if joined is None or joined.size == 1 or joined.servers:
        return None
    if joined.liveness is None:
        from fleet_mpi.wire.mpi import MPITransport
        joined.barrier()  # a new communicator is waited for without end
        names = [str(one) for one in joined.workers]
        joined.liveness = Liveness(MPITransport(joined.role_comm.Dup(), names.__getitem__), joined.size,
                                   names.__getitem__, lambda: joined.progress or 0)
        meeting.watch(joined.liveness.at_meetings())
        cluster.at_exit(joined.liveness.leave)
    return joined.liveness


def _agree(fingerprint: dict[str, Any], joined: Cluster) -> str:
    """Collective: refuse a job whose workers do not run the same program, or would sum in different ways.

    Returns a text that this start of the job has to itself.
    """
    mine = {**fingerprint, **{name: str(settings.get(name)) or "not set" for name in MUST_AGREE}}
    all_have = joined.all_gather({**agreement.compact(mine), "job": secrets.token_hex(8)})
    job: str = [one.pop("job") for one in all_have][0]
    agreement.refuse_differences(all_have, joined.index)
    return job
