"""Who a rank is, by its number and the job that the launcher describes. Needs the standard library only.

Gives a rank what the original's launchers tell by PADDLE_* variables, and takes away what belongs to another role.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing is not imported: this runs before every rank
if TYPE_CHECKING:
    from collections.abc import Mapping

# The job, for the ranks: how many serve (unset: the script decides), every worker's device, ranks on a host.
SERVERS, DEVICES, PER_NODE = "FLEET_MPI_LAUNCH_SERVERS", "FLEET_MPI_LAUNCH_DEVICES", "FLEET_MPI_LAUNCH_PER_NODE"
SERVER_LIST, WORKER_LIST = "PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_TRAINER_ENDPOINTS"
# What would tell a rank of another role than its own, if it were inherited.
OF_ROLES = ("TRAINING_ROLE", "PADDLE_TRAINING_ROLE", "PADDLE_TRAINER_ID", "PADDLE_PSERVER_ID", "PADDLE_PORT", "POD_IP",
            "PADDLE_CURRENT_ENDPOINT", SERVER_LIST)
RANK_IN = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")


def rank() -> str:
    """The number mpirun has given to this rank, as text."""
    return next((os.environ[name] for name in RANK_IN if name in os.environ), "?")


def role_of(environ: Mapping[str, str], number: str) -> tuple[str, str]:
    """("server" or "worker", its number) of a rank; ("rank", number) where the script decides who serves."""
    if SERVERS not in environ or not number.isdecimal():
        return "rank", number
    servers = int(environ[SERVERS])
    return ("server", str(int(number))) if int(number) < servers else ("worker", str(int(number) - servers))


def inherited(environ: Mapping[str, str]) -> list[str]:
    """Names of variables that are set, but belong to another role than this rank's."""
    if SERVERS not in environ:
        return []
    own = rank_variables(environ, rank())
    return [name for name in OF_ROLES if name in environ and name not in own
            and not (name == SERVER_LIST and int(environ[SERVERS]))]


def rank_variables(environ: Mapping[str, str], number: str) -> dict[str, str]:
    """What the original's launchers tell a process of this number by variables; nothing where the script decides."""
    role, index = role_of(environ, number)
    if role == "rank":
        return {}
    workers, servers = environ.get(WORKER_LIST, "").split(","), environ.get(SERVER_LIST, "").split(",")
    if role == "server":
        host, _, port = servers[int(index)].rpartition(":")
        return {**_named("PSERVER"), "PADDLE_PSERVER_ID": index, "POD_IP": host, "PADDLE_PORT": port}
    told = {"PADDLE_TRAINER_ID": index, "PADDLE_CURRENT_ENDPOINT": workers[int(index)]}
    devices = [part for part in environ.get(DEVICES, "").split(";") if part]
    if devices:
        told["FLAGS_selected_gpus"] = devices[int(index)]
    return {**told, **(_named("TRAINER") if int(environ[SERVERS]) else _of_2_6(environ, index, workers))}


def _named(role: str) -> dict[str, str]:
    return {"TRAINING_ROLE": role, "PADDLE_TRAINING_ROLE": role}


def _of_2_6(environ: Mapping[str, str], index: str, workers: list[str]) -> dict[str, str]:
    """The names that version 2.6 added for the ranks of a collective job."""
    per_node = int(environ.get(PER_NODE) or len(workers))
    local = str(int(index) % per_node)
    return {"PADDLE_GLOBAL_RANK": index, "PADDLE_GLOBAL_SIZE": str(len(workers)), "PADDLE_LOCAL_RANK": local,
            "PADDLE_RANK_IN_NODE": local, "PADDLE_LOCAL_SIZE": str(per_node),
            "PADDLE_NNODES": str(len(workers) // per_node)}
