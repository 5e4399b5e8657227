"""A worker's part in a collective job: where programs, buckets and ranks meet.

A session belongs to a scope: the scope's gradients become views of one flat array, in the order in which backward makes
them, so that a bucket needs no copy to be summed. Its sum begins as soon as its last gradient is made.
"""

import secrets
from functools import partial

import numpy as np

from fleet_mpi import arrays, settings
from fleet_mpi.arrays import Rows
from fleet_mpi.collective import choosing, shared_memory
from fleet_mpi.collective.buckets import FlatGradients, size_of
from fleet_mpi.collective.group import Group
from fleet_mpi.collective.presence import Presence
from fleet_mpi.errors import UsageError
from fleet_mpi.parameter_server import agreement
from fleet_mpi.parameter_server.patience import FIRST_STEP_S
from fleet_mpi.program.engine.frame import Clock
from fleet_mpi.ranks import cluster, meeting
from fleet_mpi.ranks.by_hand import refusal

SESSION = "@COLLECTIVE@"  # the variable of a scope that holds its session
MUST_AGREE = "FLEET_MPI_ALLREDUCE", "FLEET_MPI_SHARED_MEMORY"
_groups = {}              # this process's, by the number of communicators: they are few, and kept


class Session:
    """One worker's part in one plan, in one scope."""

    def __init__(self, plan, scope, group, make_reducers):
        self.plan, self.scope, self.group, self.make_reducers = plan, scope, group, make_reducers
        self.bucket_of = {name: number for number, one in enumerate(plan.buckets) for name in one.names}
        self.xp, self.flat, self.steps = None, None, 0
        group.patience_s = FIRST_STEP_S
        self._begin_step()

    def _begin_step(self):
        self.lacking = [len(one.names) for one in self.plan.buckets]
        self.under_way = []

    def install(self):
        """Before each step: let the scope's gradients lie in the buckets, on the device the parameters are on."""
        if self.flat is None:
            self.move_to(self._module())
        if any(has != len(one.names) for has, one in zip(self.lacking, self.plan.buckets)):
            raise UsageError(f"{self.group.name_of(self.group.index)}: step {self.steps} was left by an error while "
                             f"gradients were on their way to the other workers: none of them can go on; begin again "
                             f"from what was saved")

    def move_to(self, xp):
        """Collective, unless they do already: let the gradients lie where ``xp`` computes, and be summed from there."""
        if self.xp is not xp:
            self.xp, size = xp, size_of(self.plan.buckets)
            self.reducers, home = shared_memory.move_in(self.make_reducers(xp), self.group, size, xp)
            self.flat = FlatGradients(self.plan.gradients, self.plan.buckets, xp, home)
            for name, view in self.flat.views.items():
                self.scope.var(name).put(view)

    def _module(self):
        for name in self._sources():
            array = self.scope.array(name)
            if array is not None:
                return arrays.module_of(array)
        return np

    def _sources(self):
        """The parameters of the gradients, or of what is sent instead."""
        return [one.name.partition("@")[0] for one in self.plan.gradients]

    def ready(self, name):
        """A gradient was made; with the last one of its bucket the bucket is on its way."""
        number = self.bucket_of[name]
        self.lacking[number] -= 1
        if not self.lacking[number]:
            self.under_way.append(self.reducers[number % len(self.reducers)].start(self.flat.lines[number]))
        for one in self.under_way:
            one.advance()

    def wait(self):
        """Until every gradient is the sum over all workers."""
        self.group.finish(self.under_way, f"the gradients of step {self.steps}")
        self._begin_step()
        self.group.patience_s = 0.0
        self.steps += 1
        if cluster.current() is not None:
            cluster.current().progress = self.steps

    def gather_rows(self, rows):
        """The workers' row gradients, one behind the other in worker order: updates add up what repeats."""
        xp = arrays.module_of(rows.values)
        parts = self.gather([arrays.to_host(rows.ids), arrays.to_host(rows.values)])
        return Rows(*(arrays.to_module(np.concatenate([part[i] for part in parts]), xp) for i in range(2)), rows.height)

    def gather(self, parts):
        """Every worker's list of host arrays, by worker, while buckets go on; only their first dimension may differ."""
        return self.group.gather(parts, self.under_way)

    def sum_now(self, array):
        """Replace a contiguous array by the sum over all workers, at once: for what is in no bucket."""
        self.move_to(arrays.module_of(array))
        self.under_way.append(self.reducers[0].start(array))
        self.group.finish(self.under_way, f"what is summed in step {self.steps}")
        self.under_way.clear()

    def broadcast(self, names):
        """Take worker 0's values of these variables."""
        found = [self.scope.array(name) for name in names]
        hosts = [np.ascontiguousarray(arrays.to_host(one)) for one in found]
        self.group.broadcast(hosts)
        for array, host in zip(found, hosts):
            array[...] = arrays.to_module(host, arrays.module_of(array))


def session_of(scope):
    """The session that a scope's program runs with now, or None."""
    holder = scope.find_var(SESSION)
    return None if holder is None or holder.value is None else holder.value.current


class _Sessions:
    """The sessions of a scope, one for each plan: programs may take turns."""

    def __init__(self):
        self.by_plan, self.current = {}, None


def connect(plan, scope, group=None):
    """The session of a scope for a plan, made (in ``group``, if one is given) if there is none."""
    holder = scope.find_var(SESSION) or scope.var(SESSION)
    if holder.value is None:
        holder.value = _Sessions()
    known = holder.value.by_plan.get(id(plan))
    if known is None:
        if group is None:
            group = _join(plan)
        known = holder.value.by_plan[id(plan)] = Session(plan, holder.scope, group,
                                                           partial(choosing.choose, plan, group))
    holder.value.current = known
    return known


def _join(plan):
    """All processes of the job as workers, each with its communicators; they must run the same program."""
    joined = cluster.join("worker", plan.worker, workers=plan.workers, servers=[])
    if joined.size == 1:
        if plan.workers > 1:
            raise refusal("worker", joined.index, plan.workers, [])
        return Group(0, [], 1)
    Clock.process_worker = joined.index
    joined.takes_part = True
    presence = see_off()
    job = _agree(plan, joined)
    count = plan.options.comms
    if count not in _groups:
        comms = [joined.role_comm.Dup() for _ in range(count)]
        names = [str(one) for one in joined.workers]
        _groups[count] = Group.over_mpi(joined.index, comms, names.__getitem__, presence)
        _groups[count].hosts, _groups[count].job = [one.host for one in joined.workers], job
    return _groups[count]


def see_off():
    """Collective: from now on the workers of a job without servers notice when one of them ends; returns the
    Presence."""
    joined = cluster.current()
    if joined is None or joined.size == 1 or joined.servers:
        return None
    if joined.presence is None:
        from fleet_mpi.wire.mpi import MPITransport
        joined.barrier()  # a new communicator is waited for without end
        names = [str(one) for one in joined.workers]
        joined.presence = Presence(MPITransport(joined.role_comm.Dup(), names.__getitem__), joined.size,
                                   names.__getitem__, lambda: joined.progress or 0)
        meeting.watch(joined.presence.meets())
        cluster.at_exit(joined.presence.leave)
    return joined.presence


def _agree(plan, joined):
    """Collective: refuse a job whose workers do not run the same program, or would sum in different ways.

    Returns a text that this start of the job has to itself.
    """
    mine = {**plan.fingerprint(), **{name: str(settings.get(name)) or "not set" for name in MUST_AGREE}}
    all_have = joined.all_gather({**agreement.compact(mine), "job": secrets.token_hex(8)})
    job = [one.pop("job") for one in all_have][0]
    for number, theirs in enumerate(all_have[1:], 1):
        differ = agreement.difference(theirs, all_have[0], (f"worker {number}", "worker 0"))
        if differ:
            error = UsageError(f"worker {number} and worker 0 do not run the same job: {differ}")
            error.told_elsewhere = joined.index > 0
            raise error
    return job

