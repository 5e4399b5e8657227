"""What sums the buckets of a job: exact, fast or nccl, by node or not, as float16 or not; from settings and options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fleet_mpi import notices, settings
from fleet_mpi.collective.by_node import ByNodeAllReduce, nodes_of
from fleet_mpi.collective.device_reducers import reducers_for
from fleet_mpi.collective.exact import ExactAllReduce
from fleet_mpi.collective.half import HalfAllReduce
from fleet_mpi.errors import EnvironmentProblem, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any

    from fleet_mpi.arrays import Array
    from fleet_mpi.collective.group import Group
    from fleet_mpi.collective.reducer import Reducer

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

    def __post_init__(self) -> None:
        if self.comms < 1:
            raise UsageError(f"nccl_comm_num: expected a whole number from 1 up, got {self.comms}")
        if self.fuse_mb < 0 or self.last_mb < 0:
            raise UsageError(f"fuse_grad_size_in_MB and last_comm_group_size_MB: expected sizes from 0 up, got "
                             f"{self.fuse_mb} and {self.last_mb}")


def choose(plan: Any, group: Group, xp: ModuleType) -> Sequence[Reducer]:
    """Collective: what sums a plan's buckets of ``xp``'s arrays, one per communicator; said at start which."""
    if group.size == 1:
        return [_Alone()]
    chosen = settings.get("FLEET_MPI_ALLREDUCE") or ("exact" if group.size <= EXACT_UP_TO else "fast")
    if plan.options.half:
        chosen = _for_half(chosen, group)
    if chosen not in REDUCERS:
        *others, last = REDUCERS
        raise EnvironmentProblem(f"FLEET_MPI_ALLREDUCE={chosen}: expected {', '.join(others)} or {last}")
    nodes = _nodes(plan.options, group, REDUCERS[chosen])
    made = reducers_for(xp, chosen, REDUCERS[chosen].make(group, nodes), group)
    if group.index == 0:
        count = len(plan.gradients)
        notices.log().info("all-reduce: %s, %d workers. Find all_reduce operators: %d. To make the speed faster, some "
                           "all_reduce ops are fused during training, after fusion, the number of all_reduce ops is "
                           "%d.",
                           f"{chosen} ({_order(REDUCERS[chosen], nodes)})", group.size, count, len(plan.buckets))
    return [HalfAllReduce(one) for one in made] if plan.options.half else made


def _exact(group: Group, nodes: list[list[int]] | None) -> Sequence[Reducer]:
    return [ByNodeAllReduce(lane, nodes) if nodes else ExactAllReduce(lane, group.ranks) for lane in group.lanes]


class Way(NamedTuple):
    """One way to sum over workers."""

    # Called with a group and the workers of each node (None: whatever the node): the reducers for arrays on the host.
    make: Callable[[Group, list[list[int]] | None], Sequence[Reducer]]
    order: str                 # in which it adds, said at start
    by_node: bool = False      # whether it can add within nodes first


# What FLEET_MPI_ALLREDUCE may say. NCCL sums on devices only: ``device_reducers`` has its reducers.
REDUCERS = {
    "exact": Way(_exact, "in rank order", by_node=True),
    "fast": Way(lambda group, nodes: group.library_reducers(), "in the library's order"),
    "nccl": Way(lambda group, nodes: [], "in NCCL's order"),
}


def _order(way: Way, nodes: list[list[int]] | None) -> str:
    return f"within {len(nodes)} nodes, then between them" if nodes else way.order


def _nodes(options: Any, group: Group, way: Way) -> list[list[int]] | None:
    """The workers of each node, where sums are made by node; None where they are not, said why at start."""
    if not options.by_node:
        return None
    nodes = nodes_of(group.hosts, options.node_ranks)
    why = "all workers are on one node" if len(nodes) == 1 else "the MPI library arranges its sums itself"
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
