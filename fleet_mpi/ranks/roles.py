"""Who serves and who works: by rank, or as PADDLE_* variables say. Knows numbers and labels, joins nothing."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.ranks import cluster


class Role(enum.IntEnum):
    """What a process does."""

    WORKER = 1
    SERVER = 2
    HETER_WORKER = 3
    ALL = 4


class Part(NamedTuple):
    """A process's part in a job: its role and number, how many workers and servers there are, and known labels."""

    role: Role
    number: int
    workers: int
    servers: int
    worker_labels: tuple[str, ...] = ()
    server_labels: tuple[str, ...] = ()


def roles_for(size: int, servers: int = 0, ratio: str = "") -> list[tuple[Role, int]]:
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
        raise EnvironmentProblem(f"FLEET_MPI_SERVERS={servers}: expected 1 to {size - 1} of {size} ranks to serve, so "
                                 f"that at least one works")
    serving, working = (servers, size) if servers else _ratio(ratio or "1:1")
    roles, counts = [], {Role.SERVER: 0, Role.WORKER: 0}
    for rank in range(size):
        role = Role.SERVER if rank % (serving + working) < serving else Role.WORKER
        roles.append((role, counts[role]))
        counts[role] += 1
    if not counts[Role.WORKER]:
        raise EnvironmentProblem(f"FLEET_MPI_SERVER_RATIO={ratio!r}: with {size} ranks none is left to work; start "
                                 f"more")
    return roles


def _ratio(text: str) -> tuple[int, int]:
    servers, _, workers = text.partition(":")
    if not (servers.strip().isdecimal() and workers.strip().isdecimal() and int(workers)):
        raise EnvironmentProblem(f"FLEET_MPI_SERVER_RATIO={text!r}: expected servers:workers, such as 1:3, or 0:1 for "
                                 f"no servers")
    return int(servers), int(workers)


def by_rank(collective: bool = False) -> Part:
    """This process's part by its rank and the settings; all work where the job is ``collective``."""
    here = cluster.world()
    settings.get("TRAINING_ROLE")  # refused if it is none, also where the rank decides
    if not collective:
        cluster.tell_if_alone()
    return of_ranks([(Role.WORKER, rank) for rank in range(here.size)] if collective else roles_for(
        here.size, settings.get("FLEET_MPI_SERVERS"), settings.get("FLEET_MPI_SERVER_RATIO")))


def of_ranks(roles: list[tuple[Role, int]]) -> Part:
    """This process's part, where every rank has the role and number given."""
    role, number = roles[cluster.world().rank]
    workers = sum(role == Role.WORKER for role, _ in roles)
    return Part(role, number, workers, len(roles) - workers)


def by_variables(collective: bool = False) -> Part | None:
    """This process's part as PADDLE_* variables say; None where they say nothing."""
    servers = () if collective else _listed("PADDLE_PSERVERS_IP_PORT_LIST")
    workers = _listed("PADDLE_TRAINER_ENDPOINTS")
    if servers:
        return _among_servers(workers, servers)
    if not workers:
        return None
    role = settings.get("PADDLE_TRAINING_ROLE") or "TRAINER"
    if role != "TRAINER":
        raise EnvironmentProblem(f"PADDLE_TRAINING_ROLE={role!r}: a job without servers has TRAINER only")
    return Part(Role.WORKER, max(0, settings.get("PADDLE_TRAINER_ID")), len(workers), 0, workers)


def _among_servers(workers: tuple[str, ...], servers: tuple[str, ...]) -> Part:
    role = _required("TRAINING_ROLE")
    count = settings.get("PADDLE_TRAINERS_NUM") or len(workers) or _required("PADDLE_TRAINERS_NUM")
    number = _required("PADDLE_TRAINER_ID") if role == "TRAINER" else _own_number(servers)
    return Part(Role.WORKER if role == "TRAINER" else Role.SERVER, number, count, len(servers), workers, servers)


def _required(name: str) -> Any:
    value = settings.get(name)
    if value in ("", -1, 0) and not (name == "PADDLE_TRAINER_ID" and value == 0):
        raise EnvironmentProblem(f"environment variable {name} is not set, but PADDLE_PSERVERS_IP_PORT_LIST is: "
                                 f"start the job with mpirun, or set all PADDLE_* variables")
    return value


def _listed(name: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in settings.get(name).split(",") if one.strip())


def _own_number(servers: tuple[str, ...]) -> int:
    number = settings.get("PADDLE_PSERVER_ID")
    if number >= len(servers):
        raise EnvironmentProblem(f"PADDLE_PSERVER_ID={number}: there are {len(servers)} servers, numbered from 0: "
                                 f"{list(servers)}")
    if number >= 0:
        return number
    own = f"{_required('POD_IP')}:{_required('PADDLE_PORT')}"
    if own not in servers:
        raise EnvironmentProblem(f"this server is {own} (POD_IP:PADDLE_PORT), which is not among {list(servers)}")
    return servers.index(own)
