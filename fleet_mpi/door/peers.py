"""The other ranks of a job, as a worker of the door sees them: who is there, how they meet, how servers are reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fleet_mpi.connections import equal, members, server
from fleet_mpi.connections.worker import WorkerConnection
from fleet_mpi.door import telling

if TYPE_CHECKING:
    from fleet_mpi.collective.group import Group
    from fleet_mpi.connections.worker import Flat
    from fleet_mpi.door.declaration import Declaration
    from fleet_mpi.ranks.cluster import Cluster


class Peers(Protocol):
    """What a Job asks for: numbers, meetings of the workers, and a connection."""

    worker: int
    workers: int
    servers: int
    is_alone: bool   # whether the job is one process

    def all_gather(self, value: Any) -> list[Any]:
        """Collective, workers: everybody's value, of what JSON can say, by worker."""

    def barrier(self) -> None:
        """Collective, workers: returns when all have come."""

    def group(self) -> Group:
        """Collective, workers: what sums and broadcasts arrays."""

    def connect(self, declared: Declaration, flat: Flat | None) -> WorkerConnection:
        """Let the servers know what to keep, and connect; the worker computes in ``flat``."""

    def leave(self) -> None:
        """Say that this worker, which has not connected, will not."""


class ClusterPeers:
    """The ranks of MPI's world, or nobody in a world of one, where so many servers are embedded."""

    def __init__(self, joined: Cluster, embedded: int = 1) -> None:
        self.cluster = joined
        self.worker, self.workers = joined.index, len(joined.workers)
        self.is_alone = joined.size == 1
        self.servers = embedded if self.is_alone else len(joined.servers)
        self._group: Group | None = None
        equal.watch_others()

    def all_gather(self, value: Any) -> list[Any]:
        """Over MPI."""
        return self.cluster.all_gather(value)

    def barrier(self) -> None:
        """Over MPI."""
        self.cluster.barrier()

    def group(self) -> Group:
        """Of all workers, with or without servers beside them."""
        if self._group is None:
            self._group = equal.group_among(self.cluster, {"call": "all_reduce or broadcast"})
        return self._group

    def connect(self, declared: Declaration, flat: Flat | None) -> WorkerConnection:
        """To the servers of the job; where it has none, to one within this process."""
        if self.is_alone or not self.servers:
            connection = connect_within(declared, max(1, self.servers), flat)
            connection.cluster, self.cluster.takes_part = self.cluster, True
            return connection
        telling.declare(members.uplink(self.cluster), declared)
        terms = declared.terms([one.endpoint for one in self.cluster.servers], self.workers, self.worker)
        return WorkerConnection(terms, flat=flat)

    def leave(self) -> None:
        """Servers that wait for a declaration are told."""
        if not self.is_alone and self.servers:
            telling.leave(members.uplink(self.cluster))
            self.cluster.takes_part = True


def connect_within(declared: Declaration, servers: int, flat: Flat | None) -> WorkerConnection:
    """A connection to servers within this process, which is their only worker."""
    terms = declared.terms([f"server {number}" for number in range(servers)], 1, 0)
    return WorkerConnection(terms, server.embedded(terms, [declared.prepare()] * servers), flat=flat)
