"""What a job leaves behind: processes, segments of shared memory, files; its own and nobody else's.

A job's processes have the job's folder in their environment. Its temporary files lie in that folder, since TMPDIR says
so. Its shared memory lies in a /dev/shm of its own, mounted for the job alone, where this machine lets us (root);
elsewhere nothing is said about segments.
"""

import functools
import os
import signal
import subprocess
import time
from pathlib import Path

MARK = "FAULTS_JOB"
_OWN_SHM = 'mount -t tmpfs tmpfs /dev/shm && : >"$FAULTS_JOB/mounted" && exec "$@"'
_LEAVING_S = 3.0  # for the last processes of a job that has ended


@functools.cache
def can_mount():
    """Whether a job can have a /dev/shm of its own."""
    words = ["unshare", "-m", "sh", "-c", "mount -t tmpfs tmpfs /dev/shm"]
    try:
        return subprocess.run(words, capture_output=True, timeout=30).returncode == 0
    except OSError:
        return False


def with_own_segments(command):
    """The command, to be run with a /dev/shm of its own; its process stays the same."""
    return ["unshare", "-m", "sh", "-c", _OWN_SHM, "sh", *command] if can_mount() else list(command)


def open_segments(folder, job):
    """A descriptor of the job's own /dev/shm, which lives as long as it is open; None where it has none (yet)."""
    if not can_mount() or not os.path.exists(os.path.join(folder, "mounted")):
        return None
    try:
        return os.open(f"/proc/{job.pid}/root/dev/shm", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None


def processes(folder):
    """{number: command} of the processes of the job with this folder, zombies left out."""
    return {number: command for number in _numbers() if (command := _command_of(number, folder))}


def left(folder):
    """The processes that are still there some seconds after the job's end."""
    until = time.monotonic() + _LEAVING_S
    while (found := processes(folder)) and time.monotonic() < until:
        time.sleep(0.05)
    return found


def end(folder):
    """Kill what is left of the job."""
    for number in processes(folder):
        try:
            os.kill(number, signal.SIGKILL)
        except ProcessLookupError:
            pass


def describe(number):
    """Where a process is: its state, the kernel function that it waits in, its kernel stack."""
    parts = [f"state {_field(number, 'status', 'State:')}", f"waits in {_read(number, 'wchan') or '?'}"]
    stack = [line.split(" ", 1)[-1] for line in _read(number, "stack").splitlines()[:4]]
    return ", ".join(parts) + (f" ({' < '.join(stack)})" if stack else "")


def catches(number, signal_number):
    """Whether a process has a handler for a signal: Python takes its own away before MPI_Finalize."""
    return bool(int(_field(number, "status", "SigCgt:") or "0", 16) >> (signal_number - 1) & 1)


def rank_of(number):
    """The rank that a process is, or was started by; "" for others."""
    told = dict(entry.split("=", 1) for entry in _read(number, "environ").split("\0") if "=" in entry)
    return told.get("OMPI_COMM_WORLD_RANK", told.get("PMI_RANK", ""))


def _numbers():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdecimal()]


def _command_of(number, folder):
    """The command line of a process of the job; "" for others, and for those that have ended."""
    if f"{MARK}={folder}" not in _read(number, "environ").split("\0"):
        return ""
    if _field(number, "status", "State:").startswith("Z"):
        return ""
    return _read(number, "cmdline").replace("\0", " ").strip()


def _field(number, name, key):
    return next((line[len(key):].strip() for line in _read(number, name).splitlines() if line.startswith(key)), "")


def _read(number, name):
    try:
        return Path(f"/proc/{number}/{name}").read_text(errors="replace")
    except OSError:
        return ""
