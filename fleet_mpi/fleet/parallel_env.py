"""Who this process is among those that train together, for scripts of 2.x that ask without a fleet.

As the job has it once this process has joined one; before, as PADDLE_TRAINER_* variables or MPI say, all ranks being
workers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi import settings
from fleet_mpi.fleet.paddle2 import paddle_fleet
from fleet_mpi.fleet.role_makers import PaddleCloudRoleMaker
from fleet_mpi.program.engine.places import own_device
from fleet_mpi.ranks import cluster

if TYPE_CHECKING:
    from fleet_mpi.fleet.roles import RoleMaker
    from fleet_mpi.ranks.cluster import Cluster


class ParallelEnv:
    """This worker's number, the number of workers, its device and its label, as of now."""

    @property
    def rank(self) -> int:
        """The number of this worker."""
        return _role().worker_index()

    @property
    def world_size(self) -> int:
        """How many workers there are."""
        return _role().worker_num()

    @property
    def device_id(self) -> int:
        """The device of this rank; 0 where there is none."""
        return own_device()

    @property
    def trainer_endpoints(self) -> list[str]:
        """The workers' labels."""
        return _role().get_trainer_endpoints()

    @property
    def current_endpoint(self) -> str:
        """The label of this worker; empty where workers have none."""
        labels = self.trainer_endpoints
        return labels[self.rank] if labels else settings.get("PADDLE_CURRENT_ENDPOINT")

    local_rank, nranks, dev_id = rank, world_size, device_id


def get_rank() -> int:
    """The number of this worker."""
    return ParallelEnv().rank


def get_world_size() -> int:
    """How many workers there are."""
    return ParallelEnv().world_size


def init_parallel_env() -> ParallelEnv:
    """Collective: join the job as one of its workers, unless this process has; returns a ParallelEnv."""
    if paddle_fleet._role_maker is None:
        paddle_fleet.init(is_collective=True)
    return ParallelEnv()


def barrier() -> None:
    """Collective: wait for all workers."""
    init_parallel_env()
    paddle_fleet.barrier_worker()


def _role() -> RoleMaker | _Joined:
    """The fleet's, or what a collective job would give this process; only joins where the fleet has."""
    if paddle_fleet._role_maker is not None:
        return paddle_fleet._role_maker
    joined = cluster.current()
    return PaddleCloudRoleMaker(is_collective=True) if joined is None else _Joined(joined)


class _Joined:
    """What another fleet, or a transpiler, has made of this process."""

    def __init__(self, job: Cluster) -> None:
        self._job = job

    def worker_index(self) -> int:
        return self._job.index

    def worker_num(self) -> int:
        return len(self._job.workers)

    def get_trainer_endpoints(self) -> list[str]:
        return [member.endpoint for member in self._job.workers]
