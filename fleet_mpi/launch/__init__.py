"""Starting jobs: ``fleetrun``, the same as ``python -m fleet_mpi.launch`` and ``paddle.distributed.launch``.

Knows command lines and exit codes; starts no MPI in its own process.
"""

import os
import shutil
import sys
import tempfile

from fleet_mpi import notices
from fleet_mpi.errors import EnvironmentProblem, FleetError, UsageError
from fleet_mpi.launch import command, mpirun, running

# Launchers in ranks would start a job each. Slurm's variables do not count: batch scripts have them too.
IN_A_JOB = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def main(argv=None, unsaid=None):
    """Run the job that the command line asks for, to its end; returns its exit code."""
    try:
        return launch(command.parse(sys.argv[1:] if argv is None else argv, unsaid))
    except FleetError as error:
        sys.stderr.write(f"fleet_mpi: {type(error).__name__}: {error}\n")
        return error.exit_code


def launch(job):
    """Start the ranks of a job (see ``command.Job``) and wait for them; returns the exit code of the whole.

    Inside a job, this process is a rank already, and becomes the script itself.
    """
    if job.script[0] != "-m" and not os.path.isfile(job.script[0]):
        raise UsageError(f"no script {job.script[0]!r} (in {os.getcwd()}); fleetrun --help")
    for note in job.notes:
        notices.log().warning(note)
    size = next((int(os.environ[name]) for name in IN_A_JOB if name in os.environ), None)
    if size is not None:
        _become_the_script(job, size)
    found = mpirun.find_mpirun()
    folder = tempfile.mkdtemp(prefix="fleet_mpi-job-")
    try:
        words = command.command_line(job, found, sys.executable, running.cores())
        code, ended_by = running.run(words, command.environment(job, found, dict(os.environ), folder))
        return running.exit_code(code, ended_by, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # the last of the ranks may still be leaving its note


def _become_the_script(job, size):
    if size != job.ranks:
        raise EnvironmentProblem(f"the launcher is to start {job.ranks} ranks, but runs in a job of {size} itself; "
                                 "start it without mpirun, or the script by mpirun ... python -m fleet_mpi SCRIPT.py")
    if job.servers is not None:
        os.environ["FLEET_MPI_SERVERS"] = str(job.servers)
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", "fleet_mpi", *job.script])
