"""Runs a job's mpirun to its end, in front of the terminal that the launcher has; knows exit codes and signals."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from fleet_mpi import errors
from fleet_mpi.launch.watched import FIRST, LAST_LINES, PEER_LOST, PREEMPTED, SPOKE, failing, log_name

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE_S = 10  # for mpirun to end its ranks, before it is killed itself
AFTER_FAILURE_S = 10  # for mpirun to end the others when a rank has failed: MPICH's forgets those of other hosts
OWN_SIGNAL_S = 1  # for mpirun to act on the Ctrl-C that a terminal sends to both, before it is told again


def run(command, environ, folder=None):
    """Run mpirun with this process's stdin, stdout and stderr; returns (its code, the signal that ended it or None).

    Where a note in ``folder`` says that a rank has failed, mpirun has a few seconds to end the others. A signal to this
    process ends the job. USR1 is passed on: it asks for a checkpoint.
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
        return _wait(jobs[0], asked, folder), asked[0] if asked else None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if jobs and jobs[0].poll() is None:
            jobs[0].kill()


def _wait(job, asked, folder):
    """The code of mpirun, which is told to end when this process is, or when it does not end after a failure."""
    code = failed_at = None
    while code is None and not asked:
        code = _ended(job, 0.1)
        # After a preemption the others may still be saving.
        if failed_at is None and folder and first_code(folder) not in (None, PREEMPTED):
            failed_at = time.monotonic()
        if failed_at is not None and time.monotonic() > failed_at + AFTER_FAILURE_S:
            break
    if code is None and asked[:1] == [signal.SIGINT]:
        code = _ended(job, OWN_SIGNAL_S)
    if code is None:
        job.send_signal(signal.SIGTERM)
        code = _ended(job, PATIENCE_S)
    if code is None:
        job.kill()
        code = job.wait()
    return code


def first_code(folder):
    """What the first rank that failed ended with, by its note; None where there is none."""
    note = Path(folder, FIRST)
    return int(note.read_text()) if note.exists() else None


def _ended(job, seconds):
    try:
        return job.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None


def exit_code(code, ended_by, folder):
    """The launcher's exit code: what the first rank that failed ended with, where a rank has left a note of it.

    Without a note a watcher was killed itself, or mpirun failed on its own account. Open MPI gives 128 + signal for the
    first, MPICH the bare signal; Python gives a negative one where mpirun was killed. What the rank said before may tell.
    """
    if ended_by is not None:
        return 128 + ended_by
    if code == 0:
        return 0
    noted = first_code(folder)
    if noted is not None:
        return noted
    if code >= 0 and code not in (signal.SIGKILL, 128 + signal.SIGKILL):
        return code
    said = Path(folder, SPOKE)
    return code_of(said.read_text()) if said.exists() and said.read_text() else PEER_LOST


def code_of(said):
    """The exit code that goes with a rank's last sentence (``watched.failing``), by the kind of error that it names."""
    number = re.search(r"^Abort\((\d+)\)|\): exit code (\d+)$", said)
    if number:
        return int(number[1] or number[2])
    kind = re.search(r"\): (\w+)", said)
    if kind and kind[1] == "KeyboardInterrupt":
        return 128 + signal.SIGINT
    return getattr(getattr(errors, kind[1] if kind else "", None), "exit_code", 1)


def last_line(job, code, ended_by, folder, since=0):
    """What the launcher says at the end of a job that has logs and failed; nothing of others.

    Where the first rank that failed was killed before it could be heard, its last words are looked for in the logs that
    were written ``since`` this job started.
    """
    if not code or ended_by is not None or not job.log_dir:
        return ""
    ending = f"fleet_mpi: the job ended with code {code}; what ranks wrote is in {job.log_dir}\n"
    if Path(folder, SPOKE).exists() or job.echo == "all":
        return ending
    for role, number in job.roles:
        path = Path(job.log_dir, log_name(role, str(number)))
        text = path.read_bytes()[-(1 << 14):] if path.exists() and path.stat().st_mtime > since else b""
        if failing(text):
            lines = text.decode(errors="replace").splitlines()[-LAST_LINES:]
            return f"fleet_mpi: {role} {number} failed; the last words in {path}:\n" + "".join(
                f"    {line}\n" for line in lines) + ending
    return ending


def cores():
    """The cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
