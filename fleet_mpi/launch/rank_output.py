"""What a rank writes: into its log file, and further on where it is to be shown. Needs the standard library only."""

from __future__ import annotations

import os
import re
import sys

from fleet_mpi.launch.notes import FOLDER, SPOKE, leave_note
from fleet_mpi.launch.rank_roles import rank, role_of

TYPE_CHECKING = False  # typing is not imported: this runs before every rank
if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

# The folder of logs, how they are opened (a or w), whose output is shown (first, all or none).
LOGS, OPENED, ECHO = "FLEET_MPI_LAUNCH_LOGS", "FLEET_MPI_LAUNCH_OPENED", "FLEET_MPI_LAUNCH_ECHO"
LAST_LINES = 40
PREEMPTED = 75  # no failure: the state was saved, and the job wants to be started again
_KEPT_BYTES = 1 << 14
_KINDS = {"server": "serverlog.", "worker": "workerlog.", "rank": "ranklog."}
# How a rank of this package says that it fails, before it ends the job (ranks/ending.py), and how MPICH's Abort does:
# MPICH leaves a watcher no time after.
_FAILING = re.compile(rb"^fleet_mpi: rank \d+ \(.*?\): |^Abort\(\d+\) on node \d+ ", re.M)


def log_name(role: str, index: str) -> str:
    """The name of a rank's log file; a rank whose role the script decides has its number."""
    return _KINDS[role] + index


def failing(data: bytes) -> str:
    """The line in this part of a rank's output that says that the rank is about to end the job; empty if there is
    none."""
    found = _FAILING.search(data)
    return data[found.start():].splitlines()[0].decode(errors="replace") if found else ""


class Output:
    """The log of one rank, and the pipes that it writes into. ``who()`` says which rank it is, and where."""

    def __init__(self, environ: MutableMapping[str, str], who: Callable[[], str]) -> None:
        role, index = role_of(environ, rank())
        self.who = who
        self.path = os.path.join(environ[LOGS], log_name(role, index))
        how = os.O_APPEND if environ.get(OPENED) == "a" else os.O_TRUNC
        self.log: int | None
        try:
            self.log = os.open(self.path, os.O_WRONLY | os.O_CREAT | how, 0o666)
        except OSError as error:
            sys.exit(f"fleet_mpi: {who()} cannot write its log: {error}")
        shown = environ.get(ECHO, "all")
        self.shown = shown == "all" or shown == "first" and role != "server" and index == "0"
        self.folder = environ.get(FOLDER)
        self.pipes = {1: os.pipe(), 2: os.pipe()}
        self.recent = b""
        self.spoke = False
        # A script that prints is to be heard as it goes on, also through a pipe.
        environ.setdefault("PYTHONUNBUFFERED", "1")

    def connect(self) -> None:
        """In the rank: write into the pipes."""
        for stream, (_, end) in self.pipes.items():
            os.dup2(end, stream)

    def readers(self) -> dict[int, Callable[[bytes], None]]:
        """In the watcher: {file to read from: what takes its data}."""
        for _, end in self.pipes.values():
            os.close(end)
        return {start: self._taker(stream) for stream, (start, _) in self.pipes.items()}

    def _taker(self, stream: int) -> Callable[[bytes], None]:
        return lambda data: self._pass_on(data, stream)

    def _pass_on(self, data: bytes, stream: int) -> None:
        self._keep(data)
        if self.shown:
            write(stream, data)
        self.recent = (self.recent + data)[-_KEPT_BYTES:]
        if stream == 2 and failing(data):
            self._fails(failing(data))

    def _keep(self, data: bytes) -> None:
        """Write to the log; if that fails, report it once and go on without a log."""
        if self.log is None:
            return
        try:
            while data:
                data = data[os.write(self.log, data):]
        except OSError as error:
            self.log = None
            say(f"fleet_mpi: the log of {self.who()} ends here, the rank goes on: {self.path}: {error.strerror}\n")

    def _fails(self, why: str) -> None:
        """The rank says that it fails: its last words are shown, if it is the first of all and they are not seen
        already."""
        if self.spoke or not leave_note(self.folder, SPOKE, why, rank()):
            return
        self.spoke = True
        if "): Preempted: " in why or why.endswith(f"exit code {PREEMPTED}"):
            say(f"fleet_mpi: {self.who()} was preempted: exit code {PREEMPTED}\n")
        elif not self.shown:
            say(f"fleet_mpi: {self.who()} fails{self.last_words()}")

    def last_words(self) -> str:
        """The end of a sentence about this rank: where its log is, and what came last, where that was not shown."""
        if self.shown:
            return f"; its log is {self.path}\n"
        lines = self.recent.decode(errors="replace").splitlines()[-LAST_LINES:]
        return f"; the last words in {self.path}:\n" + "".join(f"    {line}\n" for line in lines)


def write(file: int, data: bytes) -> None:
    """All of it; a reader that has gone is no reason to end the rank."""
    try:
        while data:
            data = data[os.write(file, data):]
    except OSError:
        pass


def say(text: str) -> None:
    """Write a sentence to stderr, in one piece."""
    write(2, text.encode())
