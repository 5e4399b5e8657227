"""``python watched.py COMMAND...``: runs one rank of a job and notes how it ended. Needs the standard library only.

No mpirun tells reliably which rank failed first, and how: MPICH kills the others before it looks, names any of
them, and mixes their codes into one. The process that waits for a rank knows, before mpirun does. It says in one
sentence which rank a signal has killed, ends with the code of a lost peer, and leaves a note for the launcher: the
first of all ranks counts. A signal that mpirun sends is passed on and is no failure; if this process is killed, its
rank goes with it.
"""

import ctypes
import os
import signal
import sys

PEER_LOST = 4
FOLDER = "FLEET_MPI_LAUNCH_DIR"
FIRST = "first_to_fail"
RANK_IN = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_SET_PARENT_DEATH_SIGNAL = 1  # of linux/prctl.h
_COULD_NOT_START = 127


def main(command):
    """Run the command as a child; returns its exit code, or that of a lost peer where a signal killed it."""
    passed_on = set()
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # until there is a child to pass them on to
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _become(command, parent)

    def pass_on(number, frame):
        passed_on.add(number)
        os.kill(child, number)

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if -code in passed_on:
        return 128 - code
    if code < 0:
        sys.stderr.write(sentence(-code))
        sys.stderr.flush()
        code = PEER_LOST
    if code:
        leave_note(os.environ.get(FOLDER), code)
    return code


def _become(command, parent):
    """In the child: be the command, in a process group of its own: each signal comes once, through the parent."""
    try:
        os.setpgid(0, 0)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() == parent:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
            os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"fleet_mpi: cannot start {command[0]}: {error}\n")
    finally:
        os._exit(_COULD_NOT_START)


def rank():
    """The number mpirun has given to this rank, as text."""
    return next((os.environ[name] for name in RANK_IN if name in os.environ), "?")


def sentence(number):
    """Which rank, where, killed by what."""
    name = signal.Signals(number).name if number in set(signal.Signals) else "unknown"
    return f"fleet_mpi: rank {rank()} on {os.uname().nodename} was killed by signal {number} ({name})\n"


def leave_note(folder, code):
    """Write this rank's code where the launcher looks, unless another rank has been quicker."""
    if not folder:
        return
    own = os.path.join(folder, f"rank{rank()}")
    try:
        with open(own, "w") as file:
            file.write(str(code))
        os.link(own, os.path.join(folder, FIRST))  # whole or not at all: this process may be killed at any moment
    except OSError:
        pass  # second, or the launcher's folder is not on this host: then mpirun's code has to do


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
