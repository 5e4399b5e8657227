"""Role makers: who this process is in a job, from MPI, from arguments or from the environment.

The role is known when the object is made; ``generate_role`` (which ``fleet.init`` calls) joins the job, and
from then on what workers or servers do together is done over MPI. Endpoints are labels only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.errors import UsageError
from fleet_mpi.fleet.roles import RoleMaker
from fleet_mpi.ranks import roles
from fleet_mpi.ranks.roles import Role

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class _FromOutside(RoleMaker):
    """Takes its role from its rank or its environment."""

    def _take(self, part: roles.Part) -> None:
        RoleMaker.__init__(self, part.role, part.number, part.workers, part.worker_labels, part.server_labels)
        self._servers = part.servers


class MPISymetricRoleMaker(_FromOutside):
    """Even ranks serve, odd ranks work; one process alone works, with the parameters in itself."""

    def __init__(self) -> None:
        self._take(roles.by_rank())

    def _all_gather(self, value: Any, comm_world: str = "all") -> list[Any]:
        return super()._all_gather(value, comm_world)


MPISymmetricRoleMaker = MPISymetricRoleMaker


class MockBarrier:
    """What one process does together with nobody: nothing to wait for, its own value to gather."""

    def barrier(self) -> None:
        """Nothing to wait for."""

    barrier_all = barrier_worker = barrier

    def all_reduce(self, obj: Any) -> Any:
        """The value itself."""
        return obj

    def all_gather(self, obj: Any) -> list[Any]:
        """A list with the value."""
        return [obj]


class UserDefinedRoleMaker(RoleMaker):
    """Everything from arguments (1.x)."""

    def __init__(self, current_id: int = 0, role: Role = Role.WORKER, worker_num: int = 0,
                 server_endpoints: Sequence[str] | None = None) -> None:
        servers = _labels("server_endpoints", server_endpoints)
        _whole("current_id", current_id, 0)
        _whole("worker_num", worker_num, 1)
        if role not in (Role.WORKER, Role.SERVER):
            raise UsageError(f"role: expected Role.WORKER or Role.SERVER, got {role!r}")
        among = len(servers) if role == Role.SERVER else worker_num
        if current_id >= among:
            raise UsageError(f"current_id {current_id} is out of range: there are {among} of that role")
        super().__init__(role, current_id, worker_num, server_endpoints=servers)


class UserDefinedRoleMaker2(RoleMaker):
    """Everything from arguments (2.x); ``worker_num`` is the length of ``worker_endpoints`` where not given."""

    def __init__(self, is_collective: bool = False, init_gloo: bool = False, *, current_id: int = 0,
                 role: Role = Role.WORKER, worker_num: int = 0, worker_endpoints: Sequence[str] = (),
                 server_endpoints: Sequence[str] = (), **kwargs: Any) -> None:
        workers, servers = list(worker_endpoints), [] if is_collective else list(server_endpoints)
        count = worker_num or len(workers)
        if not count:
            raise UsageError("UserDefinedRoleMaker: give worker_num or worker_endpoints")
        super().__init__(role, current_id, count, workers, servers)


class UserDefinedCollectiveRoleMaker(RoleMaker):
    """Workers only, from arguments (1.x)."""

    def __init__(self, current_id: int = 0, worker_endpoints: Sequence[str] | None = None) -> None:
        workers = _labels("worker_endpoints", worker_endpoints)
        _whole("current_id", current_id, 0)
        if current_id >= len(workers):
            raise UsageError(f"current_id {current_id} is out of range: there are {len(workers)} workers")
        super().__init__(Role.WORKER, current_id, len(workers), workers)


class PaddleCloudRoleMaker(_FromOutside):
    """Everything from PADDLE_* variables; without them from MPI, as MPISymetricRoleMaker, or all workers."""

    def __init__(self, is_collective: bool = False, **kwargs: Any) -> None:
        self._is_collective = is_collective
        self._take(roles.by_variables(is_collective) or roles.by_rank(is_collective))


class GeneralRoleMaker(PaddleCloudRoleMaker):
    """As PaddleCloudRoleMaker; its file-system and time-out arguments are not needed over MPI."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(is_collective=False)
        self.kwargs = kwargs


def _labels(name: str, given: Any) -> list[str]:
    if not isinstance(given, list) or not given or not all(isinstance(one, str) for one in given):
        raise UsageError(f"{name}: expected a list of 'host:port' texts, got {given!r}")
    if len(set(given)) != len(given):
        raise UsageError(f"{name}: the same endpoint twice: {given}")
    return given


def _whole(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UsageError(f"{name}: expected a whole number of at least {least}, got {value!r}")
