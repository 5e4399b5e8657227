"""Runs a job's mpirun to its end, in front of the terminal that the launcher has; knows exit codes and signals."""

import os
import signal
import subprocess
from pathlib import Path

from fleet_mpi.launch.watched import FIRST, PEER_LOST

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE_S = 10  # for mpirun to end its ranks, before it is killed itself
OWN_SIGNAL_S = 1  # for mpirun to act on the Ctrl-C that a terminal sends to both, before it is told again


def run(command, environ):
    """Run mpirun with this process's stdin, stdout and stderr; returns (its code, the signal that ended it or None).

    A signal to this process ends the job. USR1 is passed on: it asks for a checkpoint.
    """
    asked, jobs, before = [], [], {}

    def pass_on(number, frame):
        for job in jobs:
            job.send_signal(number)

    try:
        for number in ENDING:
            before[number] = signal.signal(number, lambda got, frame: asked.append(got))
        before[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, pass_on)
        jobs.append(subprocess.Popen(command, env=environ))
        return _wait(jobs[0], asked), asked[0] if asked else None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if jobs and jobs[0].poll() is None:
            jobs[0].kill()


def _wait(job, asked):
    """The code of mpirun, which is told to end when this process is."""
    code = None
    while code is None and not asked:
        code = _ended(job, 0.1)
    if code is None and asked[0] == signal.SIGINT:
        code = _ended(job, OWN_SIGNAL_S)
    if code is None:
        job.send_signal(signal.SIGTERM)
        code = _ended(job, PATIENCE_S)
    if code is None:
        job.kill()
        code = job.wait()
    return code


def _ended(job, seconds):
    try:
        return job.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None


def exit_code(code, ended_by, folder):
    """The launcher's exit code: what the first rank that failed ended with, where a rank has left a note of it.

    Without a note a watcher was killed itself, or mpirun failed on its own account. Open MPI gives 128 + signal for the
    first, MPICH the bare signal; Python gives a negative one where mpirun was killed.
    """
    if ended_by is not None:
        return 128 + ended_by
    if code == 0:
        return 0
    note = Path(folder, FIRST)
    if note.exists():
        return int(note.read_text())
    return PEER_LOST if code < 0 or code in (signal.SIGKILL, 128 + signal.SIGKILL) else code


def cores():
    """The cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
