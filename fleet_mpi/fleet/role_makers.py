"""Role makers: who this process is in a job, from MPI, from arguments or from the environment.

The role is known when the object is made; ``generate_role`` (which ``fleet.init`` calls) joins the job, and
from then on what workers or servers do together is done over MPI. Endpoints are labels only.
"""

import enum

from fleet_mpi import cluster, notices, settings
from fleet_mpi.errors import EnvironmentProblem, UsageError


class Role(enum.IntEnum):
    """What a process does."""

    WORKER = 1
    SERVER = 2
    HETER_WORKER = 3
    ALL = 4


def roles_for(size, servers=0, ratio=""):
    """(role, index) of every rank of a world, where MPI gives the roles.

    Even ranks serve and odd ones work; a world of one is a worker that keeps its parameters itself. With
    ``servers`` that many first ranks serve; with a ``ratio`` such as "1:3" each four ranks have one server,
    their first; with "0:1" none serves.
    """
    if size == 1:
        return [(Role.WORKER, 0)]
    if servers and ratio:
        raise EnvironmentProblem("FLEET_MPI_SERVERS and FLEET_MPI_SERVER_RATIO are both set: give one of them")
    if not 0 <= servers < size:
        raise EnvironmentProblem(f"FLEET_MPI_SERVERS={servers}: expected 1 to {size - 1} of {size} ranks to serve, so that "
                                 f"at least one works")
    serving, working = (servers, size) if servers else _ratio(ratio or "1:1")
    roles, counts = [], {Role.SERVER: 0, Role.WORKER: 0}
    for rank in range(size):
        role = Role.SERVER if rank % (serving + working) < serving else Role.WORKER
        roles.append((role, counts[role]))
        counts[role] += 1
    if not counts[Role.WORKER]:
        raise EnvironmentProblem(f"FLEET_MPI_SERVER_RATIO={ratio!r}: with {size} ranks none is left to work; start more")
    return roles


def _ratio(text):
    servers, _, workers = text.partition(":")
    if not (servers.strip().isdecimal() and workers.strip().isdecimal() and int(workers)):
        raise EnvironmentProblem(f"FLEET_MPI_SERVER_RATIO={text!r}: expected servers:workers, such as 1:3, or 0:1 for no "
                                 f"servers")
    return int(servers), int(workers)


class RoleMaker:
    """Base: role, index, and the lists of workers and servers. Getters are ready at once."""

    def __init__(self, role=Role.WORKER, index=0, workers=1, worker_endpoints=(), server_endpoints=()):
        self._role = Role(role)
        self._index = int(index)
        self._workers = int(workers)
        self._servers = len(server_endpoints)
        self._worker_endpoints = list(worker_endpoints)
        self._server_endpoints = list(server_endpoints)
        self._cluster = None

    def generate_role(self):
        """Collective: join the job; every rank comes here once. May be called any number of times."""
        if self._cluster is None:
            own = self._server_endpoints if self.is_server() else self._worker_endpoints
            self._cluster = cluster.join(
                "server" if self.is_server() else "worker", self._index,
                own[self._index] if self._index < len(own) else "", self._workers, self._server_endpoints or self._servers)

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
        """How many workers the job has, on every rank."""
        return self._workers

    def server_num(self):
        """How many servers the job has, on every rank."""
        return self._servers

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
        return self._labels(self._worker_endpoints, "workers")

    def get_pserver_endpoints(self):
        """The servers' labels."""
        return self._labels(self._server_endpoints, "servers")

    def _labels(self, given, group):
        """The labels given, else those that the ranks told each other."""
        return list(given) or [member.endpoint for member in getattr(self._cluster, group, ()) if self._cluster.size > 1]

    def to_string(self):
        """One line for people."""
        return (f"role: {self._role.name}, index: {self._index}, workers: {self._workers} "
                f"{self.get_trainer_endpoints()}, servers: {self._servers} {self.get_pserver_endpoints()}")

    def all_gather(self, value):
        """Collective: the values of all processes, workers first, then servers."""
        return self._together().all_gather(value, "all")

    def all_reduce_worker(self, input, output, mode="sum"):
        """Collective, workers: combine their arrays into ``output``; a server has no part in it."""
        if self._has_part("all_reduce_worker", "worker"):
            output[...] = self._together().all_reduce(input, mode, "worker")

    def barrier_worker(self):
        """Collective, workers: wait for all of them; a server has no part in it."""
        self._barrier("worker")

    def barrier_all(self):
        """Collective: wait for all processes."""
        self._barrier("all")

    def _all_reduce(self, input, mode="sum", comm_world="worker"):
        return self._together().all_reduce(input, mode, comm_world)

    def _all_gather(self, value, comm_world="worker"):
        return self._together().all_gather(value, comm_world)

    def _barrier(self, comm_world="worker"):
        if self._has_part("a barrier", comm_world):
            self._together().barrier(comm_world)

    def _barrier_server(self):
        if self.is_server():
            self._barrier("server")

    def _worker_gather(self, value):
        return self._all_gather(value, "worker") if self.is_worker() else None

    def _together(self):
        self.generate_role()
        return self._cluster

    def _has_part(self, what, group):
        """Whether this process belongs to the group; said once where it does not, as the original says it."""
        if group == "all" or self._together().size == 1 or group == self._cluster.role:
            return True
        notices.once((what, group), f"{what} among the {group}s means nothing to {self._cluster.me}")
        return False

    def _finalize(self):
        """Nothing: MPI ends with the process, after all messages."""

    _is_worker, _is_server, _is_first_worker = is_worker, is_server, is_first_worker
    _worker_num, _server_num, _worker_index, _server_index = worker_num, server_num, worker_index, server_index
    _get_trainer_endpoints, _get_pserver_endpoints = get_trainer_endpoints, get_pserver_endpoints
    _generate_role, _barrier_worker, _barrier_all = generate_role, barrier_worker, barrier_all

    @property
    def _node_type_comm(self):
        """The communicator of the processes with this role; None where there is only one."""
        return self._together().role_comm


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

    def __init__(self):
        self._take_rank()

    def _get_rank(self):
        return cluster.world().rank

    def _get_size(self):
        return cluster.world().size

    def _all_gather(self, value, comm_world="all"):
        return super()._all_gather(value, comm_world)


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


class PaddleCloudRoleMaker(_FromMPI):
    """Everything from PADDLE_* variables; without them from MPI, as MPISymetricRoleMaker, or all workers."""

    def __init__(self, is_collective=False, **kwargs):
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
        raise EnvironmentProblem(f"PADDLE_PSERVER_ID={index}: there are {len(servers)} servers, numbered from 0: {servers}")
    if index >= 0:
        return index
    own = f"{_required('POD_IP')}:{_required('PADDLE_PORT')}"
    if own not in servers:
        raise EnvironmentProblem(f"this server is {own} (POD_IP:PADDLE_PORT), which is not among {servers}")
    return servers.index(own)
