"""``python watched.py COMMAND...``: runs one rank of a job and notes how it ended. Needs the standard library only.

No mpirun tells reliably which rank failed first, and how: MPICH kills the others before it looks, names any of them,
and mixes their codes into one. The process that waits for a rank knows, before mpirun does. It says in one sentence
which rank ended in which way, ends with the rank's code (that of a lost peer where a signal killed it), and leaves a
note for the launcher: the first of all ranks counts. A signal that mpirun sends is passed on and is no failure. If this
process is killed, its rank goes with it; if mpirun, or its daemon on this host, is killed, both go.

It also gives the rank what only follows from its number (``rank_roles``), and where there is a folder for logs, writes
the rank's output there (``rank_output``).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import sys
import time

if __name__ == "__main__":
    # Started as a file, without site-packages: this package is found beside it.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from fleet_mpi.launch import leftovers
from fleet_mpi.launch.notes import BEGAN, ENDED, FIRST, FOLDER, VANISHED, leave_note
from fleet_mpi.launch.rank_output import LOGS, PREEMPTED, Output, say
from fleet_mpi.launch.rank_roles import inherited, rank, rank_variables, role_of

TYPE_CHECKING = False  # typing is not imported: this runs before every rank
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PEER_LOST = 4
REPORT = "FLEET_MPI_LAUNCH_REPORT"  # the file to which the rank reports (ranks/report.py)
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_LOOKING_S = 0.5  # for a rank that has ended while something it started keeps its pipes open, and for mpirun's death
_NOTICES_S = 3.0  # for MPICH's mpirun to see that a rank's line has closed
_HOLD_S = 0.05    # for ranks.watcher to stop those that are in MPI_Init, and may be making memory
_LAST_READS = 64  # of 64 KiB: more than a pipe holds
_SET_PARENT_DEATH_SIGNAL = 1  # of linux/prctl.h
_COULD_NOT_START = 127
_VANISHED = "ended in the middle of the job, with exit code 0 and without a word (os._exit?)"


def main(command: list[str]) -> int:
    """Run the command as a child; returns its exit code, or that of a lost peer where a signal killed it."""
    os.environ.update(rank_variables(os.environ, rank()))
    for name in inherited(os.environ):
        del os.environ[name]
    leave_note(os.environ.get(FOLDER), BEGAN, "", rank())
    watched = Watched()
    passed_on = set()
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # until there is a child to pass them on to
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _become(command, parent, watched)

    def pass_on(number: int, frame: object) -> None:
        passed_on.add(number)
        with contextlib.suppress(ProcessLookupError):   # it may have ended
            os.kill(child, number)

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    code = os.waitstatus_to_exitcode(_follow(child, watched.readers()))
    if -code in passed_on:
        return 128 - code
    leave_note(os.environ.get(FOLDER), ENDED, "", rank())
    return watched.ended(code)


def _become(command: list[str], parent: int, watched: Watched) -> None:
    """In the child: be the command, in a process group of its own: each signal comes once, through the parent."""
    try:
        os.setpgid(0, 0)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        watched.connect()
        if os.getppid() == parent:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
            os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"fleet_mpi: cannot start {command[0]}: {error}\n")
        sys.stderr.flush()
    finally:
        os._exit(_COULD_NOT_START)


def _follow(child: int, readers: Mapping[int, Callable[[bytes], None]]) -> int:
    """Forward output and signals until the child has exited and its output is drained; returns its wait status.

    What the child itself has started may keep the pipes open for longer, and is not waited for.
    """
    selector, launcher = selectors.DefaultSelector(), os.getppid()
    for file, take in readers.items():
        os.set_blocking(file, False)
        selector.register(file, selectors.EVENT_READ, take)
    ended = status = 0
    while not ended and selector.get_map():
        for key, _ in selector.select(_LOOKING_S):
            _read(key, selector)
        ended, status = os.waitpid(child, os.WNOHANG)
        if os.getppid() != launcher:
            os.kill(child, signal.SIGKILL)
            os._exit(PEER_LOST)
    if not ended:
        status = os.waitpid(child, 0)[1]
    for _ in range(_LAST_READS):
        for key, _ in selector.select(0) if selector.get_map() else ():
            _read(key, selector)
    return status


def _read(key: selectors.SelectorKey, selector: selectors.BaseSelector) -> None:
    try:
        data = os.read(key.fd, 1 << 16)
    except BlockingIOError:
        return
    if data:
        key.data(data)
    else:
        selector.unregister(key.fd)


class Watched:
    """The rank that this process watches: its output, what it has reported, and what is said of its end."""

    def __init__(self) -> None:
        role, index = role_of(os.environ, rank())
        self.role = "" if role == "rank" else f"{role} {index}"
        self.output = Output(os.environ, self.who) if os.environ.get(LOGS) else None
        self.report, self.writes = os.pipe()
        self.reported: set[str] = set()
        os.environ[REPORT] = str(self.writes)

    def connect(self) -> None:
        """In the rank: report, and write into the log's pipes."""
        os.set_inheritable(self.writes, True)
        if self.output:
            self.output.connect()

    def readers(self) -> dict[int, Callable[[bytes], None]]:
        """In the watcher: {file to read from: what takes its data}."""
        os.close(self.writes)
        return {self.report: self._take_report, **(self.output.readers() if self.output else {})}

    def _take_report(self, data: bytes) -> None:
        for line in data.decode(errors="replace").splitlines():
            word, _, rest = line.partition(" ")
            self.reported.add(word)
            if word == "joined":
                self.role = rest

    def who(self) -> str:
        """Which rank this is, its role where that is known, and where it runs."""
        return f"rank {rank()}{f' ({self.role})' if self.role else ''} on {os.uname().nodename}"

    def ended(self, code: int) -> int:
        """Say and note how the rank ended; returns the code for mpirun."""
        folder = os.environ.get(FOLDER)
        if code == 0 and "ends" in self.reported:
            return 0
        if code == 0 and "joined" not in self.reported:
            # Whether it had begun anything with the others, mpirun knows.
            leave_note(folder, VANISHED, f"fleet_mpi: {self.who()} {_VANISHED}", rank())
            _hang_up()
            return 0
        how, code = _how(code), PEER_LOST if code <= 0 else code
        first = leave_note(folder, FIRST, str(code), rank())
        if how.startswith("was killed") or first and not self._has_spoken():
            self._say(how)
        if folder:
            time.sleep(_HOLD_S)
            leftovers.note(os.getppid(), folder)  # the other ranks of this host live on for a moment
        if code != PREEMPTED:
            _end_job(code)
        return code

    def _has_spoken(self) -> bool:
        return self.output.spoke if self.output else "fails" in self.reported

    def _say(self, how: str) -> None:
        if how.endswith(f"exit code {PREEMPTED}"):
            say(f"fleet_mpi: {self.who()} was preempted: exit code {PREEMPTED}\n")
        else:
            # MPICH's mpirun may end before it has read this: then the launcher says it.
            leave_note(os.environ.get(FOLDER), VANISHED, f"fleet_mpi: {self.who()} {how}", rank())
            say(f"fleet_mpi: {self.who()} {how}{self.output.last_words() if self.output else chr(10)}")


def _how(code: int) -> str:
    """How a process ended that did not end in order."""
    if code >= 0:
        return f"ended with exit code {code}" if code else _VANISHED
    name = signal.Signals(-code).name if -code in set(signal.Signals) else "unknown"
    return f"was killed by signal {-code} ({name})"


def _hang_up() -> None:
    """Close the rank's line to MPICH's mpirun, which ends a job when that happens before MPI_Finalize.

    Where it sees first that a process has ended with 0, it forgets the line, and the others wait for ever (1 of 40 jobs
    on a busy machine). So this process lives on until it is killed with the others.
    """
    with contextlib.suppress(KeyError, ValueError, OSError):   # another launcher
        os.close(int(os.environ["PMI_FD"]))
        time.sleep(_NOTICES_S)


def _end_job(code: int) -> None:
    """MPICH's mpirun takes no notice of a rank that ends before it starts MPI, and is told by a line of its own
    protocol."""
    try:
        if "MPI_LOCALNRANKS" in os.environ:  # not srun, whose protocol is another one
            os.write(int(os.environ["PMI_FD"]), b"cmd=abort exitcode=%d\n" % code)
    except (KeyError, ValueError, OSError):
        pass  # another launcher, which sees how processes end


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
