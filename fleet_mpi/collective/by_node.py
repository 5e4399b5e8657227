"""All-reduce in two levels: within each node, then between nodes, for networks slower than a node's own memory.

Order of the sum: within a node its ranks from the lowest to the highest, then the nodes' sums in the order of the
nodes' first ranks: (0 + 1) + (2 + 3) for two nodes of two. So the bits are fixed, but others than those of ``exact``.

Each chunk has one leader in every node. The node's ranks send it their parts; the leaders add up the nodes' sums among
themselves and send the total back within their nodes. Leaders take turns from chunk to chunk, the same number in every
node, so that all ranks work, and a byte crosses between two nodes once per node instead of once per rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.collective.exact import CHUNK, ExactAllReduce
from fleet_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet_mpi.wire.transport import Transport


class ByNodeAllReduce(ExactAllReduce):
    """Sums arrays over all ranks of ``nodes`` (lists of ranks, equally long); all must start the same in one order."""

    def __init__(self, transport: Transport, nodes: Sequence[Sequence[int]], chunk: int = CHUNK) -> None:
        home = next(node for node in nodes if transport.rank in node)
        place = home.index(transport.rank)
        super().__init__(transport, home, chunk, ExactAllReduce(transport, [node[place] for node in nodes], chunk))


def nodes_of(hosts: Sequence[str], node_ranks: int = 0) -> list[list[int]]:
    """The nodes of a job as lists of ranks, by the ranks' ``hosts``; ``node_ranks`` consecutive ranks where it is
    set."""
    count = len(hosts)
    if node_ranks >= count:
        return [list(range(count))]
    if node_ranks > 0:
        if count % node_ranks:
            raise UsageError(f"hierarchical all-reduce: {count} workers do not make nodes of {node_ranks} "
                             f"(hierarchical_allreduce_inter_nranks): the number of workers must be a multiple of it")
        return [list(range(start, start + node_ranks)) for start in range(0, count, node_ranks)]
    found: dict[str, list[int]] = {}
    for rank, host in enumerate(hosts):
        found.setdefault(host, []).append(rank)
    if len({len(ranks) for ranks in found.values()}) > 1:
        told = ", ".join(f"{host}: {len(ranks)}" for host, ranks in found.items())
        raise UsageError(f"hierarchical all-reduce: every host must have the same number of workers, got {told}; start "
                         f"as many on each, or say with hierarchical_allreduce_inter_nranks how many count as a node")
    return list(found.values())
