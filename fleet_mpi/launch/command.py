"""From a job to the one command line that starts it, for each MPI: a plain function.

Ranks come in order: servers first, then workers; where they run on hosts that take turns, the line says so in the way
of its MPI. What every rank has to know goes in variables; what only one has to know follows from its number, and
``watched`` sees to it there. So one program serves all roles.
"""

from __future__ import annotations

import shlex
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fleet_mpi.launch import mpirun, notes, rank_output, rank_roles, watched
from fleet_mpi.launch.job import MPI

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fleet_mpi.launch.job import Allocation, Job
    from fleet_mpi.launch.mpirun import Launcher

# What a user may have set for the ranks: Open MPI hands nothing on to other hosts that it is not told to.
HANDED_ON = ("FLEET_MPI_", "PADDLE_", "FLAGS_", "TRAINING_ROLE", "PYTHON", "NUMBA_", "OMP_", "OPENBLAS_", "MKL_",
             "CUDA_",
             "NCCL_", "UCX_", "FI_", "CPU_NUM", "DATA_HOME", "LD_LIBRARY_PATH", "MPI4PY_")


class Command(NamedTuple):
    """A command line, and the variables it needs beside those that the launcher was started with."""

    words: tuple[str, ...]
    added: dict[str, str]

    def text(self) -> str:
        """For a shell."""
        setting = [f"{name}={shlex.quote(value)}" for name, value in sorted(self.added.items())]
        return " ".join([*(["env", *setting] if setting else []), shlex.join(self.words)])


def command(job: Job, found: Launcher, around: Allocation, python: str, environ: Mapping[str, str], folder: str = "",
            root: bool | None = None) -> Command:
    """The command that starts the Job by the Launcher ``found`` with the interpreter ``python``.

    ``around``: the Allocation; ``environ``: the launcher's variables; ``folder``: where ranks leave notes.
    """
    added = {**mpirun.environment(found, environ, root, len(set(job.hosts)), "" if job.hosts else folder),
             **told(job), **_output(job, folder)}
    program = [python, "-I", "-S", str(Path(watched.__file__)), python, "-m", "fleet_mpi", *job.script]
    several = bool(job.hosts) or len(around.nodes) > 1
    names = sorted(name for name in {*environ, *added} if name.startswith(HANDED_ON)) if several else []
    make = {mpirun.OPEN_MPI: _open_mpi, mpirun.MPICH: _mpich, mpirun.SLURM: _slurm}[found.family]
    return Command((found.path, *make(job, found, around, program, names)), added)


def told(job: Job) -> dict[str, str]:
    """The variables that tell ranks who is who."""
    if job.kind == MPI:
        return {}
    variables = {rank_roles.SERVERS: str(job.servers), rank_roles.WORKER_LIST: ",".join(job.worker_labels),
                 "PADDLE_TRAINERS_NUM": str(len(job.worker_labels))}
    if job.servers:
        variables.update({"FLEET_MPI_SERVERS": str(job.servers), rank_roles.SERVER_LIST: ",".join(job.server_labels)})
    if job.devices:
        variables[rank_roles.DEVICES] = ";".join(job.devices)
    if job.per_node:
        variables[rank_roles.PER_NODE] = str(job.per_node)
    return variables


def _output(job: Job, folder: str) -> dict[str, str]:
    """The variables that tell ranks where notes and logs go."""
    variables = {notes.FOLDER: folder} if folder else {}
    if job.log_dir:
        variables.update({rank_output.LOGS: str(Path(job.log_dir).absolute()),
                          rank_output.OPENED: "a" if job.append else "w",
                          rank_output.ECHO: job.echo})
    return variables


def runs(hosts: Iterable[str]) -> list[tuple[str, int]]:
    """(host, how many) of every run of ranks that follow each other on one host."""
    return [(host, len(list(ranks))) for host, ranks in groupby(hosts)]


def _counted(places: Iterable[tuple[str, int]]) -> str:
    return ",".join(f"{host}:{count}" for host, count in places)


def _open_mpi(job: Job, found: Launcher, around: Allocation, program: Sequence[str], names: Sequence[str]) -> list[str]:
    """``-np N --host a:2,b:2 program``; round-robin placement takes a part per turn."""
    words = []
    if job.told.rsh:
        words += (["--mca", "plm_rsh_agent"] if found.version < 5 else ["--prtemca", "plm_ssh_agent"]) + [job.told.rsh]
    words += mpirun.options(found.family, job.ranks, 0 if job.hosts else around.cores, found.version)
    for name in names:
        words += ["-x", name]
    places = runs(job.hosts)
    if len(places) == len(set(job.hosts)):
        return [*words, "-np", str(job.ranks), *(["--host", _counted(places)] if places else []), *program]
    parts = [["-np", str(count), "--host", f"{host}:{count}", *program] for host, count in places]
    return [*words, *parts[0], *(word for part in parts[1:] for word in (":", *part))]


def _mpich(job: Job, found: Launcher, around: Allocation, program: Sequence[str], names: Sequence[str]) -> list[str]:
    """``-hosts a:2,b:2 -np N program``; round-robin placement is a rank map, before MPICH 5 a repeated host list.

    The map keeps one daemon on each host, without which Slurm refuses; variables are handed on without a word.
    """
    words = ["-launcher", "ssh", "-launcher-exec", job.told.rsh] if job.told.rsh else []
    places, names = runs(job.hosts), list(dict.fromkeys(job.hosts))
    if len(places) > len(names) and found.version >= 5:
        places = [(name, job.hosts.count(name)) for name in names]
        words += ["-rankmap", ",".join(str(names.index(host)) for host in job.hosts)]
    words += ["-hosts", _counted(places)] if places else []
    return [*words, "-np", str(job.ranks), *program]


def _slurm(job: Job, found: Launcher, around: Allocation, program: Sequence[str], names: Sequence[str]) -> list[str]:
    """``srun -n N program``: with hosts, a name for every rank; only so does srun keep their order."""
    words = [f"--mpi={found.plugin}"] if found.plugin else []
    words += ["--kill-on-bad-exit=1", "--export=ALL", "-n", str(job.ranks)]
    if around.tasks and job.ranks > around.tasks:
        words.append("--overcommit")
    if job.hosts:
        words += ["--distribution=arbitrary", f"--nodelist={','.join(job.hosts)}"]
    return [*words, *program]
