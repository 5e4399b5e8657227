"""What every role maker can do once it knows its own role.

Where a role comes from is ``role_makers``' business, and ``ranks.roles``'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi import notices
from fleet_mpi.ranks import cluster
from fleet_mpi.ranks.roles import Role

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy as np
    from numpy.typing import ArrayLike


class RoleMaker:
    """Base: role, index, and the lists of workers and servers. Getters are ready at once."""

    def __init__(self, role: Role = Role.WORKER, index: int = 0, workers: int = 1, worker_endpoints: Sequence[str] = (),
                 server_endpoints: Sequence[str] = ()) -> None:
        self._role = Role(role)
        self._index = int(index)
        self._workers = int(workers)
        self._servers = len(server_endpoints)
        self._worker_endpoints = list(worker_endpoints)
        self._server_endpoints = list(server_endpoints)
        self._cluster: Any = None   # a Cluster from generate_role on

    def generate_role(self) -> None:
        """Collective: join the job; every rank comes here once. May be called any number of times."""
        if self._cluster is None:
            own = self._server_endpoints if self.is_server() else self._worker_endpoints
            self._cluster = cluster.join(
                "server" if self.is_server() else "worker", self._index,
                own[self._index] if self._index < len(own) else "", self._workers,
                self._server_endpoints or self._servers)

    def is_worker(self) -> bool:
        """Whether this process trains."""
        return self._role == Role.WORKER

    def is_server(self) -> bool:
        """Whether this process keeps parameters."""
        return self._role == Role.SERVER

    def is_first_worker(self) -> bool:
        """Whether this is worker 0."""
        return self.is_worker() and self._index == 0

    def worker_num(self) -> int:
        """How many workers the job has, on every rank."""
        return self._workers

    def server_num(self) -> int:
        """How many servers the job has, on every rank."""
        return self._servers

    def worker_index(self) -> int:
        """The number of this worker."""
        return self._index

    def server_index(self) -> int:
        """The number of this server."""
        return self._index

    def role_id(self) -> int:
        """The number of this process among those of its role."""
        return self._index

    def get_trainer_endpoints(self) -> list[str]:
        """The workers' labels."""
        return self._labels(self._worker_endpoints, "workers")

    def get_pserver_endpoints(self) -> list[str]:
        """The servers' labels."""
        return self._labels(self._server_endpoints, "servers")

    def _labels(self, given: Sequence[str], group: str) -> list[str]:
        """The labels given, else those that the ranks told each other."""
        return list(given) or [member.endpoint for member in getattr(self._cluster, group, ())
                               if self._cluster.size > 1]

    def to_string(self) -> str:
        """One line for people."""
        return (f"role: {self._role.name}, index: {self._index}, workers: {self._workers} "
                f"{self.get_trainer_endpoints()}, servers: {self._servers} {self.get_pserver_endpoints()}")

    def all_gather(self, value: Any) -> list[Any]:
        """Collective: the values of all processes, workers first, then servers."""
        return self._together().all_gather(value, "all")

    def all_reduce_worker(self, input: ArrayLike, output: np.ndarray, mode: str = "sum") -> None:
        """Collective, workers: combine their arrays into ``output``; a server has no part in it."""
        if self._has_part("all_reduce_worker", "worker"):
            output[...] = self._together().all_reduce(input, mode, "worker")

    def barrier_worker(self) -> None:
        """Collective, workers: wait for all of them; a server has no part in it."""
        self._barrier("worker")

    def barrier_all(self) -> None:
        """Collective: wait for all processes."""
        self._barrier("all")

    def _all_reduce(self, input: ArrayLike, mode: str = "sum", comm_world: str = "worker") -> np.ndarray:
        return self._together().all_reduce(input, mode, comm_world)

    def _all_gather(self, value: Any, comm_world: str = "worker") -> list[Any]:
        return self._together().all_gather(value, comm_world)

    def _barrier(self, comm_world: str = "worker") -> None:
        if self._has_part("a barrier", comm_world):
            self._together().barrier(comm_world)

    def _barrier_server(self) -> None:
        if self.is_server():
            self._barrier("server")

    def _worker_gather(self, value: Any) -> list[Any] | None:
        return self._all_gather(value, "worker") if self.is_worker() else None

    def _together(self) -> cluster.Cluster:
        self.generate_role()
        return self._cluster

    def _has_part(self, what: str, group: str) -> bool:
        """Whether this process belongs to the group; said once where it does not, as the original says it."""
        if group == "all" or self._together().size == 1 or group == self._cluster.role:
            return True
        notices.once((what, group), f"{what} among the {group}s means nothing to {self._cluster.me}")
        return False

    def _finalize(self) -> None:
        """Nothing: MPI ends with the process, after all messages."""

    _is_worker, _is_server, _is_first_worker = is_worker, is_server, is_first_worker
    _worker_num, _server_num, _worker_index, _server_index = worker_num, server_num, worker_index, server_index
    _get_trainer_endpoints, _get_pserver_endpoints = get_trainer_endpoints, get_pserver_endpoints
    _generate_role, _barrier_worker, _barrier_all = generate_role, barrier_worker, barrier_all
    _role_id = role_id

    def _node_num(self) -> int:
        """How many machines the job's processes are on."""
        job = self._together()
        return len({member.host for member in (*job.workers, *job.servers)})

    def _heter_worker_num(self) -> int:
        """None: all workers are alike."""
        return 0

    def _is_heter_worker(self) -> bool:
        """Never: all workers are alike."""
        return False

    def _is_non_distributed(self) -> bool:
        """Whether this process is the whole job."""
        return self._together().size == 1

    def _get_rank(self) -> int:
        """The rank of this process in MPI's world."""
        return cluster.world().rank

    def _get_size(self) -> int:
        """How many processes the job has."""
        return cluster.world().size

    def get_local_endpoint(self) -> str:
        """The label of this process; empty where it has none."""
        labels = self.get_pserver_endpoints() if self.is_server() else self.get_trainer_endpoints()
        return labels[self._index] if self._index < len(labels) else ""

    @property
    def _node_type_comm(self) -> Any:
        """The communicator of the processes with this role; None where there is only one."""
        return self._together().role_comm
