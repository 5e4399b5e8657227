"""The launcher from its first word to its last: reads the command line, starts the job, and says how it ended.

Knows exit codes and which part does what; starts no MPI in its own process.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from fleet_mpi import notices
from fleet_mpi.errors import EnvironmentProblem, FleetError, NotBuilt, UsageError
from fleet_mpi.launch import announce, dry_run, log_folder, mpirun, notes, rank_roles, reaching, running, surroundings
from fleet_mpi.launch.command import command, told
from fleet_mpi.launch.job import parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet_mpi.launch.command import Command
    from fleet_mpi.launch.job import Allocation, Job
    from fleet_mpi.launch.mpirun import Launcher

# Launchers in ranks would start a job each. Slurm's tasks count only where they are ranks: batch scripts have them too.
STARTS = 3  # of a mpirun that fails before it starts any rank
IN_A_JOB = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def main(argv: Sequence[str] | None = None, unsaid: tuple[int, int] | None = None, log_dir: str = "log") -> int:
    """``fleet_mpi.launch.main``, without what a Ctrl-C during imports needs."""
    try:
        environ = dict(os.environ)
        around = surroundings.around(environ)
        return launch(parse(sys.argv[1:] if argv is None else argv, around, environ, unsaid, log_dir), around)
    except FleetError as error:
        sys.stderr.write(f"fleet_mpi: {type(error).__name__}: {error}\n")
        return UsageError.exit_code if isinstance(error, NotBuilt) else error.exit_code


def launch(job: Job, around: Allocation) -> int:
    """Start the ranks of a Job and wait for them; returns the exit code of the whole.

    Inside a job, this process is a rank already, and becomes the script itself.
    """
    if job.script[0] != "-m" and not os.path.isfile(job.script[0]):
        raise UsageError(f"no script {job.script[0]!r} (in {os.getcwd()}); fleetrun --help")
    for note in announce.idle(job):
        notices.log().warning(note)
    size = _size_of_this_job(os.environ)
    if size is not None:
        _become_the_script(job, size)
    found = mpirun.find_launcher(job.told.launcher or "mpirun")
    environ = dict(os.environ)
    if job.told.dry_run:
        from fleet_mpi.launch import plan_command  # here, since it needs what no start of a job should wait for

        made = command(job, found, around, sys.executable, environ)
        return plan_command.show(dry_run.text(job, made, around), job.servers, job.told.model)
    logs = log_folder.claim(job.log_dir, "--log_dir" in job.given)
    try:
        return _start(job._replace(log_dir=logs.path), found, around, environ)
    finally:
        logs.release()


def _start(job: Job, found: Launcher, around: Allocation, environ: dict[str, str]) -> int:
    folder = _folder(job)
    try:
        made = command(job, found, around, sys.executable, environ, folder)
        sys.stderr.write(announce.opening(job, around, made.added))
        sys.stderr.flush()
        return _run(job, made, around, environ, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # the last of the ranks may still be leaving its note


def _run(job: Job, made: Command, around: Allocation, environ: dict[str, str], folder: str) -> int:
    """Run the command, a second and third time if mpirun itself fails to start; returns the exit code."""
    started = time.time()
    for again in range(1, STARTS + 1):
        ending = running.run(made.words, {**environ, **made.added}, folder)
        if again == STARTS or not ending.has_not_begun:
            break
        notices.log().warning(f"mpirun could not start, before it started any rank: starting it again ({again} of "
                              f"{STARTS - 1})")
    if job.hosts and ending.code and ending.ended_by is None and notes.read_note(folder, notes.BEGAN) is None:
        problem = reaching.problem(job, around)
        if problem:
            raise problem
    code = running.exit_code(ending.code, ending.ended_by, folder)
    sys.stderr.write(running.cause(ending, folder) + running.last_line(job, code, ending.ended_by, folder, started))
    return code


def _size_of_this_job(environ: Mapping[str, str]) -> int | None:
    """How many ranks there are, where this process is one of them already; else None."""
    names = [*IN_A_JOB, *(["SLURM_STEP_NUM_TASKS"] if "PMIX_RANK" in environ else [])]
    return next((int(environ[name]) for name in names if name in environ), None)


def _folder(job: Job) -> str:
    """Where ranks leave notes: with the logs where these are elsewhere too, since other hosts see only such a
    folder."""
    try:
        if job.log_dir and job.worker_labels and not job.servers:
            with open(os.path.join(job.log_dir, "endpoints.log"), "w") as file:
                file.write(announce.endpoints(job))
        beside = os.path.abspath(job.log_dir) if job.log_dir and job.hosts else None
        return tempfile.mkdtemp(prefix=".fleet_mpi-job-", dir=beside)
    except OSError as error:
        raise EnvironmentProblem(f"the launcher needs a folder to write to: {error}; say another by --log_dir, or by "
                                 f"TMPDIR for notes of its own") from None


def _become_the_script(job: Job, size: int) -> None:
    if size != job.ranks:
        raise EnvironmentProblem(f"the launcher is to start {job.ranks} ranks, but runs in a job of {size} itself; "
                                 "start it without mpirun, or the script by mpirun ... python -m fleet_mpi SCRIPT.py")
    os.environ.update(told(job))
    os.environ.update(rank_roles.rank_variables(os.environ, rank_roles.rank()))
    for name in rank_roles.inherited(os.environ):
        del os.environ[name]
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", "fleet_mpi", *job.script])
