"""Role makers: who this process is in a job, from MPI, from arguments or from the environment.

The role is known when the object is made; ``generate_role`` (which ``fleet.init`` calls) joins the job, and
from then on what workers or servers do together is done over MPI. Endpoints are labels only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem, UsageError
from fleet_mpi.fleet.roles import Role, RoleMaker, roles_for
from fleet_mpi.ranks import cluster

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class _FromMPI(RoleMaker):
    """Takes its role from its rank."""

    def _take_rank(self, collective=False):
        here = cluster.world()
        settings.get("TRAINING_ROLE")  # refused if it is none, also where the rank decides
        if not collective:
            cluster.tell_if_alone()
        roles = [(Role.WORKER, rank) for rank in range(here.size)] if collective else roles_for(
            here.size, settings.get("FLEET_MPI_SERVERS"), settings.get("FLEET_MPI_SERVER_RATIO"))
        role, index = roles[here.rank]
        workers = sum(role == Role.WORKER for role, _ in roles)
        RoleMaker.__init__(self, role, index, workers)
        self._servers = len(roles) - workers


class MPISymetricRoleMaker(_FromMPI):
    """Even ranks serve, odd ranks work; one process alone works, with the parameters in itself."""

    def __init__(self) -> None:
        self._take_rank()

    def _all_gather(self, value, comm_world="all"):
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


class PaddleCloudRoleMaker(_FromMPI):
    """Everything from PADDLE_* variables; without them from MPI, as MPISymetricRoleMaker, or all workers."""

    def __init__(self, is_collective: bool = False, **kwargs: Any) -> None:
        self._is_collective = is_collective
        servers = [] if is_collective else _listed("PADDLE_PSERVERS_IP_PORT_LIST")
        workers = _listed("PADDLE_TRAINER_ENDPOINTS")
        if servers:
            self._take_variables(workers, servers)
        elif workers:
            role = settings.get("PADDLE_TRAINING_ROLE") or "TRAINER"
            if role != "TRAINER":
                raise EnvironmentProblem(f"PADDLE_TRAINING_ROLE={role!r}: a job without servers has TRAINER only")
            super().__init__(Role.WORKER, max(0, settings.get("PADDLE_TRAINER_ID")), len(workers), workers)
        else:
            self._take_rank(is_collective)

    def _take_variables(self, workers, servers):
        role = _required("TRAINING_ROLE")
        count = settings.get("PADDLE_TRAINERS_NUM") or len(workers) or _required("PADDLE_TRAINERS_NUM")
        index = _required("PADDLE_TRAINER_ID") if role == "TRAINER" else _own_index(servers)
        super().__init__(Role.WORKER if role == "TRAINER" else Role.SERVER, index, count, workers, servers)


class GeneralRoleMaker(PaddleCloudRoleMaker):
    """As PaddleCloudRoleMaker; its file-system and time-out arguments are not needed over MPI."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(is_collective=False)
        self.kwargs = kwargs


def _labels(name, given):
    if not isinstance(given, list) or not given or not all(isinstance(one, str) for one in given):
        raise UsageError(f"{name}: expected a list of 'host:port' texts, got {given!r}")
    if len(set(given)) != len(given):
        raise UsageError(f"{name}: the same endpoint twice: {given}")
    return given


def _whole(name, value, least):
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UsageError(f"{name}: expected a whole number of at least {least}, got {value!r}")


def _required(name):
    value = settings.get(name)
    if value in ("", -1, 0) and not (name == "PADDLE_TRAINER_ID" and value == 0):
        raise EnvironmentProblem(f"environment variable {name} is not set, but PADDLE_PSERVERS_IP_PORT_LIST is: "
                                 f"start the job with mpirun, or set all PADDLE_* variables")
    return value


def _listed(name):
    return [one.strip() for one in settings.get(name).split(",") if one.strip()]


def _own_index(servers):
    index = settings.get("PADDLE_PSERVER_ID")
    if index >= len(servers):
        raise EnvironmentProblem(f"PADDLE_PSERVER_ID={index}: there are {len(servers)} servers, numbered from 0: "
                                 f"{servers}")
    if index >= 0:
        return index
    own = f"{_required('POD_IP')}:{_required('PADDLE_PORT')}"
    if own not in servers:
        raise EnvironmentProblem(f"this server is {own} (POD_IP:PADDLE_PORT), which is not among {servers}")
    return servers.index(own)
