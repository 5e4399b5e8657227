"""Role makers: who this process is in a job, from arguments or from the environment.

Today a job is one process: a role maker that describes more than one worker, or servers, is refused by
``fleet.init`` with the reason. Endpoints are labels only.
"""

import enum

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem, UsageError


class Role(enum.IntEnum):
    """What a process does."""

    WORKER = 1
    SERVER = 2
    HETER_WORKER = 3
    ALL = 4


class RoleMaker:
    """Base: role, index, and the lists of workers and servers. Getters are ready at once."""

    def __init__(self, role=Role.WORKER, index=0, workers=1, worker_endpoints=(), server_endpoints=()):
        self._role = Role(role)
        self._index = index
        self._workers = workers
        self._worker_endpoints = list(worker_endpoints)
        self._server_endpoints = list(server_endpoints)

    def generate_role(self):
        """Nothing to do: the role is known when the object is made; may be called any number of times."""

    def is_worker(self):
        """Whether this process trains."""
        return self._role == Role.WORKER

    def is_server(self):
        """Whether this process keeps parameters."""
        return self._role == Role.SERVER

    def is_first_worker(self):
        """Whether this is worker 0."""
        return self.is_worker() and self._index == 0

    def worker_num(self):
        """How many workers the job has."""
        return self._workers

    def server_num(self):
        """How many servers the job has."""
        return len(self._server_endpoints)

    def worker_index(self):
        """The number of this worker."""
        return self._index

    def server_index(self):
        """The number of this server."""
        return self._index

    def role_id(self):
        """The number of this process among those of its role."""
        return self._index

    def get_trainer_endpoints(self):
        """The workers' labels."""
        return list(self._worker_endpoints)

    def get_pserver_endpoints(self):
        """The servers' labels."""
        return list(self._server_endpoints)

    def to_string(self):
        """One line for people."""
        return (f"role: {self._role.name}, index: {self._index}, workers: {self._workers} "
                f"{self._worker_endpoints}, servers: {self._server_endpoints}")

    def all_gather(self, value):
        """Every worker's value: of one process, a list of one."""
        return [value]

    def all_reduce_worker(self, input, output, mode="sum"):
        """Combine the workers' arrays into ``output``: of one process, a copy."""
        _known_mode(mode)
        output[...] = input

    def barrier_worker(self):
        """Wait for all workers."""

    def barrier_all(self):
        """Wait for all processes."""

    def _all_reduce(self, input, mode="sum", comm_world="worker"):
        _known_mode(mode)
        return input

    _is_worker, _is_server, _is_first_worker = is_worker, is_server, is_first_worker
    _worker_num, _server_num, _worker_index, _server_index = worker_num, server_num, worker_index, server_index
    _get_trainer_endpoints, _get_pserver_endpoints = get_trainer_endpoints, get_pserver_endpoints
    _all_gather, _generate_role, _barrier_worker = all_gather, generate_role, barrier_worker

    @property
    def _node_type_comm(self):
        """The communicator of the processes with this role; None where there is only one."""
        return None


class MPISymetricRoleMaker(RoleMaker):
    """Even ranks serve, odd ranks work; one process alone works, with the parameters in itself."""


MPISymmetricRoleMaker = MPISymetricRoleMaker


class UserDefinedRoleMaker(RoleMaker):
    """Everything from arguments (1.x)."""

    def __init__(self, current_id=0, role=Role.WORKER, worker_num=0, server_endpoints=None):
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

    def __init__(self, is_collective=False, init_gloo=False, *, current_id=0, role=Role.WORKER, worker_num=0,
                 worker_endpoints=(), server_endpoints=(), **kwargs):
        workers, servers = list(worker_endpoints), [] if is_collective else list(server_endpoints)
        count = worker_num or len(workers)
        if not count:
            raise UsageError("UserDefinedRoleMaker: give worker_num or worker_endpoints")
        super().__init__(role, current_id, count, workers, servers)


class UserDefinedCollectiveRoleMaker(RoleMaker):
    """Workers only, from arguments (1.x)."""

    def __init__(self, current_id=0, worker_endpoints=None):
        workers = _labels("worker_endpoints", worker_endpoints)
        _whole("current_id", current_id, 0)
        if current_id >= len(workers):
            raise UsageError(f"current_id {current_id} is out of range: there are {len(workers)} workers")
        super().__init__(Role.WORKER, current_id, len(workers), workers)


class PaddleCloudRoleMaker(RoleMaker):
    """Everything from PADDLE_* variables; without them one process that works alone."""

    def __init__(self, is_collective=False, **kwargs):
        self._is_collective = is_collective
        servers = [] if is_collective else _listed("PADDLE_PSERVERS_IP_PORT_LIST")
        workers = _listed("PADDLE_TRAINER_ENDPOINTS")
        if not servers:
            index = max(0, settings.get("PADDLE_TRAINER_ID")) if workers else 0
            super().__init__(Role.WORKER, index, max(1, len(workers)), workers)
            return
        role = _required("TRAINING_ROLE")
        if role not in ("TRAINER", "PSERVER"):
            raise EnvironmentProblem(f"TRAINING_ROLE={role!r}: expected TRAINER or PSERVER")
        count = _required("PADDLE_TRAINERS_NUM")
        if role == "TRAINER":
            super().__init__(Role.WORKER, _required("PADDLE_TRAINER_ID"), count, workers, servers)
        else:
            super().__init__(Role.SERVER, _own_index(servers), count, workers, servers)


class GeneralRoleMaker(PaddleCloudRoleMaker):
    """As PaddleCloudRoleMaker; its file-system and time-out arguments are not needed over MPI."""

    def __init__(self, **kwargs):
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


def _known_mode(mode):
    if mode not in ("sum", "max", "min"):
        raise UsageError(f"all_reduce: mode must be sum, max or min, got {mode!r}")


def _required(name):
    value = settings.get(name)
    if value in ("", -1, 0) and not (name == "PADDLE_TRAINER_ID" and value == 0):
        raise EnvironmentProblem(f"environment variable {name} is not set, but PADDLE_PSERVERS_IP_PORT_LIST is: "
                                 f"start the job with mpirun, or set all PADDLE_* variables")
    return value


def _listed(name):
    return [one.strip() for one in settings.get(name).split(",") if one.strip()]


def _own_index(servers):
    own = f"{_required('POD_IP')}:{_required('PADDLE_PORT')}"
    if own not in servers:
        raise EnvironmentProblem(f"this server is {own} (POD_IP:PADDLE_PORT), which is not among {servers}")
    return servers.index(own)
