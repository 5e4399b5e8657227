"""Starting jobs: ``fleetrun``, the same as ``python -m fleet_mpi.launch`` and ``paddle.distributed.launch``.

    __main__            ``python -m fleet_mpi.launch``
    launch_ps           ``paddle.distributed.launch_ps`` of 1.x
    starting            the launcher, from the command line to the exit code

From words to a command line:

    flags               every flag, and ``--help``
    job                 the processes of a job, their hosts and their output
    surroundings        cores, GPUs and Slurm's nodes
    nodelist            Slurm's lists of nodes
    mpirun              which mpirun to use, and its options
    command             the mpirun command line
    announce            what is printed before a job starts
    dry_run             ``--dry-run``

While the job runs:

    running             runs mpirun to its end: exit codes and signals
    boxes               mpirun's own messages between the output of the ranks
    log_folder          the folder of a job's logs
    notes               what the ranks' watchers report to the launcher
    keeper              a process that ends the job if the launcher is killed
    leftovers           what a killed job leaves in /dev/shm
    reaching            why a job on other hosts did not begin

Beside every rank:

    watched             the process that runs one rank and notes how it ended
    rank_roles          a rank's role, and its PADDLE_* variables
    rank_output         a rank's log file and shown output

Other commands:

    plan_command        ``python -m fleet_mpi plan``: which server would keep what
    names_command       ``python -m fleet_mpi names``: whether ``import paddle`` finds this package
    export_command      ``python -m fleet_mpi export``: saved models as safetensors, ONNX, npz
    gpu_check/          ``python -m fleet_mpi gpu-check``: whether a GPU computes rightly, and how fast
    doctor              ``python -m fleet_mpi doctor``: whether a job can run here
    doctor_probe        the process that looks around for it and starts MPI
    doctor_listening    reads the probe's lines
    doctor_facts        what one process sees
    doctor_launcher     who started the process
    doctor_checks       what the facts of all ranks mean for MPI
    doctor_machine      what they mean for cores, memory, GPUs, folders and Slurm

Imports nothing by itself: a rank's watcher (``watched``) runs on the standard library, and Ctrl-C may come at any
moment.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing is not imported: this runs before every rank
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130  # as a shell counts SIGINT


def main(argv: Sequence[str] | None = None, unsaid: tuple[int, int] | None = None, log_dir: str = "log") -> int:
    """Run the job that the command line asks for, to its end; returns its exit code.

    ``unsaid``: (servers, workers) where the words say nothing; ``log_dir``: where they do not say another.
    """
    try:
        from fleet_mpi.launch import starting  # within the try: Ctrl-C during imports is no traceback

        return starting.main(argv, unsaid, log_dir)
    except KeyboardInterrupt:
        return INTERRUPTED
