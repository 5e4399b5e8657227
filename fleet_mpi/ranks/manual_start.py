"""Processes that were started by hand cannot meet over MPI: the one mpirun line that begins them together instead.

Each part of the line sets what tells its process who it is, by ``env``, which every MPI can start. Knows the
names of variables and programs; starts nothing.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping

from fleet_mpi.errors import EnvironmentProblem

# What differs between the processes of a job begun by hand; only those that are set are put into the line.
_TOLD_APART: dict[str, Callable[[str, int, str, str], str | None]] = {
    "TRAINING_ROLE": lambda role, index, host, port: "PSERVER" if role == "server" else "TRAINER",
    "PADDLE_TRAINING_ROLE": lambda role, index, host, port: "PSERVER" if role == "server" else "TRAINER",
    "PADDLE_TRAINER_ID": lambda role, index, host, port: str(index),
    "PADDLE_PSERVER_ID": lambda role, index, host, port: str(index) if role == "server" else None,
    "POD_IP": lambda role, index, host, port: host,
    "PADDLE_PORT": lambda role, index, host, port: port,
    "PADDLE_CURRENT_IP": lambda role, index, host, port: host,
    "PADDLE_CURRENT_IPP": lambda role, index, host, port: host,
    "PADDLE_CURRENT_ENDPOINT": lambda role, index, host, port: f"{host}:{port}" if host else None,
}
# Where the job is described by PaddleCloud's variables, this process may do without those of the other role.
_BY_THE_CLOUD = ("PADDLE_TRAINER_ID", "POD_IP", "PADDLE_PORT")


def refusal(role: str, index: int, workers: int, servers: int | Iterable[str]) -> EnvironmentProblem:
    """The error for a process that is one of several but alone in its world.

    Args:
        role, index: who it is.
        workers: how many workers it believes in; servers: a count, or the labels.
    """
    labels = [""] * servers if isinstance(servers, int) else list(servers)
    line = one_line(workers, labels, getattr(sys, "orig_argv", [sys.executable, *sys.argv]), os.environ)
    told = any(os.environ.get(name) for name in _TOLD_APART)
    return EnvironmentProblem(
        f"this process is {role} {index} of a job with {workers} worker(s) and {len(labels)} server(s), but it was "
        f"started alone: over MPI processes meet only if one command starts them all. Use, instead of all the commands"
        f"{'' if told else ' (with the arguments of each process in its part)'}:\n{line}")


def one_line(workers: int, servers: Iterable[str], command: list[str], variables: Mapping[str, str]) -> str:
    """The mpirun line for a job: servers by their labels, then workers, each with ``command`` and its own variables.

    ``variables``: this process's environment; what it says of PADDLE_* and FLAGS_* goes to all processes.
    """
    shared = {name: value for name, value in sorted(variables.items())
              if name.startswith(("PADDLE_", "FLAGS_", "FLEET_MPI_")) and name not in _TOLD_APART}
    parts = [("server", index, *_host_and_port(label)) for index, label in enumerate(servers)]
    parts += [("worker", index, "", "") for index in range(workers)]
    return shlex.join(_mpirun(len(parts))) + " " + " : ".join(
        "-np 1 " + shlex.join([*_environment(shared, part, variables), *command]) for part in parts)


def _environment(shared: Mapping[str, str], part: tuple[str, int, str, str], variables: Mapping[str, str]) -> list[str]:
    """The ``env`` command that gives one process its variables; nothing where there are none."""
    needed = _BY_THE_CLOUD if variables.get("TRAINING_ROLE") else ()
    own = {name: rule(*part) for name, rule in _TOLD_APART.items() if variables.get(name) or name in needed}
    told = {**shared, **{name: value for name, value in own.items() if value}}
    return ["env", *(f"{name}={value}" for name, value in told.items())] if told else []


def _host_and_port(label: str) -> tuple[str, str]:
    host, _, port = label.rpartition(":")
    return host, port


def _mpirun(count: int) -> list[str]:
    """The launcher of this environment, with what Open MPI needs to start ``count`` processes here."""
    words = [_beside_python("mpirun") or "mpirun"]
    if _beside_python("ompi_info") or (words == ["mpirun"] and shutil.which("ompi_info")):
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            words.append("--allow-run-as-root")
        if count > (os.cpu_count() or 1):
            words.append("--oversubscribe")
    return words


def _beside_python(program: str) -> str | None:
    path = os.path.join(sys.prefix, "bin", program)
    return path if os.path.isfile(path) else None
