"""What sums the buckets of a job: exact, fast or nccl, by node or not, as float16 or not; from settings and options.

The one place where the choice is made, and the one table of what there is to choose from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fleet_mpi import notices, settings
from fleet_mpi.collective import device_reducers
from fleet_mpi.collective.by_node import ByNodeAllReduce, nodes_of
from fleet_mpi.collective.cuda_awareness import Awareness
from fleet_mpi.collective.exact import ExactAllReduce
from fleet_mpi.collective.half import HalfAllReduce
from fleet_mpi.collective.staging import StagedAllReduce
from fleet_mpi.errors import EnvironmentProblem, UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any

    from fleet_mpi.arrays import Array
    from fleet_mpi.collective.device_reducers import Ability
    from fleet_mpi.collective.group import Group
    from fleet_mpi.collective.reducer import Reducer

    Nodes = list[list[int]] | None

EXACT_UP_TO = 8  # ranks: beyond, the library's order unless the setting says otherwise


@dataclass
class Options:
    """How gradients travel; the strategies' names for it stand in fleet/."""

    fuse_mb: float = 32
    last_mb: float = 1
    comms: int = 1               # communicators that buckets take turns on
    by_node: bool = False        # first within a node, then between nodes
    node_ranks: int = 0          # ranks that count as a node; 0: those on one host
    half: bool = False           # gradients travel as float16
    mean: bool = True            # of the workers' gradients; else their sum
    way: str = ""                # of WAYS, whatever the setting says; empty: as the setting says

    def __post_init__(self) -> None:
        if self.comms < 1:
            raise UsageError(f"nccl_comm_num: expected a whole number from 1 up, got {self.comms}")
        if self.fuse_mb < 0 or self.last_mb < 0:
            raise UsageError(f"fuse_grad_size_in_MB and last_comm_group_size_MB: expected sizes from 0 up, got "
                             f"{self.fuse_mb} and {self.last_mb}")
        if self.way and self.way not in WAYS:
            raise UsageError(f"how to sum: expected one of {', '.join(WAYS)}, got {self.way!r}; "
                             f"{nearest(self.way, WAYS)}")


def choose(plan: Any, group: Group, xp: ModuleType) -> Sequence[Reducer]:
    """Collective: what sums a plan's buckets of ``xp``'s arrays, one per communicator; said at start which.

    On the host in rank order up to EXACT_UP_TO workers, then as the MPI library likes. On devices by NCCL where all
    workers can, else by the MPI library, from device memory or through pinned memory. The plan's way comes first, then
    the setting.
    """
    if group.size == 1:
        return [_Alone()]
    wanted = plan.options.way or _wanted()
    found = device_reducers.abilities(group, xp, with_nccl=wanted in ("", "nccl"))
    on_hosts = [number for number, one in enumerate(found) if not one.device]
    if on_hosts and wanted == "nccl":
        raise _for_all(group, f"FLEET_MPI_ALLREDUCE=nccl: expected all workers on GPUs, got worker {on_hosts[0]} on "
                              f"the host: run on a CUDAPlace, or choose exact or fast")
    chosen = _on_hosts(wanted, plan, group) if on_hosts else _on_devices(wanted, plan, group, xp, found)
    reducers = chosen.reducers
    if 0 < len(on_hosts) < group.size:  # messages of host arrays for all; who has a device copies
        reducers = [StagedAllReduce(one) for one in reducers]
    _say(chosen, plan, group)
    return [HalfAllReduce(one) for one in reducers] if plan.options.half else reducers


def by_size(group: Group) -> str:
    """The name of the way in which arrays on hosts are summed: the setting's, else by the number of workers."""
    name = _wanted() or ("exact" if group.size <= EXACT_UP_TO else "fast")
    if WAYS[name].on_hosts is None:
        raise _for_all(group, f"FLEET_MPI_ALLREDUCE={name}: it sums arrays on GPUs only, and these are on hosts: "
                              f"choose exact or fast")
    return name


def _wanted() -> str:
    """What the setting says."""
    wanted: str = settings.get("FLEET_MPI_ALLREDUCE")
    if wanted and wanted not in WAYS:
        *others, last = WAYS
        raise EnvironmentProblem(f"FLEET_MPI_ALLREDUCE={wanted}: expected {', '.join(others)} or {last}")
    return wanted


class Chosen(NamedTuple):
    """The name of a way, its reducers, and what is said of it at start."""

    name: str
    reducers: Sequence[Reducer]
    about: str


def _on_hosts(wanted: str, plan: Any, group: Group) -> Chosen:
    name = wanted or by_size(group)
    name = _for_half(name, group) if plan.options.half else name
    way = WAYS[name]
    assert way.on_hosts is not None  # who is asked for a way of devices has refused
    nodes = _nodes(plan.options, group, way)
    return Chosen(name, way.on_hosts(group, nodes), _order(way, nodes))


def _on_devices(wanted: str, plan: Any, group: Group, xp: ModuleType, found: Sequence[Ability]) -> Chosen:
    problem = ""
    if wanted in ("", "nccl"):
        problem = device_reducers.why_no_nccl(found, group.hosts)
        try:
            if not problem:
                return _chosen_on_devices("nccl", plan, group, xp)
        except EnvironmentProblem as error:  # it did not begin, for any worker
            problem = str(error)
        if wanted:
            raise _for_all(group, f"FLEET_MPI_ALLREDUCE=nccl: {problem}; or choose exact or fast")
    name = _for_half(wanted or "fast", group) if plan.options.half else wanted or "fast"
    return _chosen_on_devices(name, plan, group, xp, f"; not by NCCL: {problem}" if problem else "")


def _chosen_on_devices(name: str, plan: Any, group: Group, xp: ModuleType, why: str = "") -> Chosen:
    way = WAYS[name]
    assert way.on_devices is not None
    nodes = _nodes(plan.options, group, way)
    if not way.over_mpi:
        aware, path = Awareness(False, ""), "from device to device"
    elif nodes:
        aware, path = Awareness(False, ""), "through pinned host memory: sums by node are made on the host"
    else:
        aware = device_reducers.agreed_awareness(group, xp)
        path = f"{'straight from device' if aware.is_aware else 'through pinned host'} memory: {aware.reason}"
    return Chosen(name, way.on_devices(group, nodes, xp, aware.is_aware), f"{_order(way, nodes)}, {path}{why}")


def _say(chosen: Chosen, plan: Any, group: Group) -> None:
    if group.index == 0:
        notices.log().info("all-reduce: %s, %d workers. Find all_reduce operators: %d. To make the speed faster, some "
                           "all_reduce ops are fused during training, after fusion, the number of all_reduce ops is "
                           "%d.",
                           f"{chosen.name} ({chosen.about})", group.size, len(plan.gradients), len(plan.buckets))


def _for_all(group: Group, text: str) -> EnvironmentProblem:
    """An error that every worker raises; the first one says it."""
    error = EnvironmentProblem(text)
    error.reported_by_peer = group.index > 0
    return error


class Way(NamedTuple):
    """One way to sum over workers, for arrays on hosts and for arrays on devices."""

    # Called with a group and the workers of each node (None: whatever the node). None: not for arrays there.
    on_hosts: Callable[[Group, Nodes], Sequence[Reducer]] | None
    # Called with the same, the arrays' module, and whether MPI takes device memory.
    on_devices: Callable[[Group, Nodes, ModuleType, bool], Sequence[Reducer]] | None
    order: str                 # in which it adds, said at start
    by_node: bool = False      # whether it can add within nodes first
    over_mpi: bool = True      # whether MPI carries the arrays


def _exact(group: Group, nodes: Nodes) -> Sequence[Reducer]:
    return [ByNodeAllReduce(lane, nodes) if nodes else ExactAllReduce(lane, group.ranks) for lane in group.lanes]


def _exact_on_devices(group: Group, nodes: Nodes, xp: ModuleType, is_aware: bool) -> Sequence[Reducer]:
    if nodes:
        return [StagedAllReduce(one) for one in _exact(group, nodes)]
    return device_reducers.exact_reducers(group, xp, is_aware)


# What FLEET_MPI_ALLREDUCE may say.
WAYS = {
    "exact": Way(_exact, _exact_on_devices, "in rank order", by_node=True),
    "fast": Way(lambda group, nodes: group.library_reducers(),
                lambda group, nodes, xp, is_aware: device_reducers.library_reducers(group, is_aware),
                "in the library's order"),
    "nccl": Way(None, lambda group, nodes, xp, is_aware: device_reducers.nccl_reducers(group, xp), "in NCCL's order",
                over_mpi=False),
}


def _order(way: Way, nodes: Nodes) -> str:
    return f"within {len(nodes)} nodes, then between them" if nodes else way.order


def _nodes(options: Any, group: Group, way: Way) -> Nodes:
    """The workers of each node, where sums are made by node; None where they are not, said why at start."""
    if not options.by_node:
        return None
    nodes = nodes_of(group.hosts, options.node_ranks)
    who = "the MPI library" if way.over_mpi else "NCCL"
    why = "all workers are on one node" if len(nodes) == 1 else f"{who} arranges its sums itself"
    if len(nodes) > 1 and way.by_node:
        return nodes
    if group.index == 0:
        notices.log().info("hierarchical all-reduce is off: %s", why)
    return None


def _for_half(chosen: str, group: Group) -> str:
    """float16 is summed in rank order always: MPI has no such type, and as float32 it would save nothing."""
    if chosen == "fast" and group.index == 0:
        notices.log().info("fp16_allreduce: the MPI library does not sum float16; it is summed in rank order instead")
    return "exact" if chosen == "fast" else chosen


class _Alone:
    """One worker: the sum is there."""

    def start(self, array: Array) -> _Alone:
        """Over at once."""
        return self

    def advance(self) -> bool:
        """Nothing to do."""
        return False

    def is_over(self) -> bool:
        """Always."""
        return True

    def waits_for(self) -> list[int]:
        """Nobody."""
        return []
