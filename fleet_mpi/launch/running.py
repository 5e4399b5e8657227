"""Runs a job's mpirun to its end, in front of the terminal that the launcher has; knows exit codes and signals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fleet_mpi import errors
from fleet_mpi.launch import leftovers
from fleet_mpi.launch.boxes import Boxes
from fleet_mpi.launch.keeper import PATIENCE_S, Keeper, follow_parent
from fleet_mpi.launch.notes import BEGAN, SPOKE, VANISHED, first_code, has_cut_short, read_note
from fleet_mpi.launch.rank_output import LAST_LINES, PREEMPTED, failing, log_name
from fleet_mpi.launch.watched import PEER_LOST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType
    from typing import Any

    from fleet_mpi.launch.job import Job

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AFTER_FAILURE_S = 2  # for mpirun to end the others when a rank has failed: MPICH's forgets those of other hosts
OWN_SIGNAL_S = 1  # for mpirun to act on the Ctrl-C that a terminal sends to both, before it is told again
LOOKING_S, LONGEST_S = 0.25, 30  # between looks for the ranks' segments: first, and when the job has run for long
_LAST_WORDS_S = 1  # for what mpirun wrote to be shown, after its end
# Its session folder is named by its process number, and one of a mpirun that was killed, long ago, may be in the way.
_BAD = "BAD TERMINATION"
_NOT_BEGUN = "listener thread failed to start"
# How ranks (ranks/ending.py) and their watchers begin a sentence about a rank.
_NAMED = re.compile(rb"^fleet_mpi: rank \d+ (?:\(|on )", re.M)
_LONGEST_NAME = 40


def run(command: Sequence[str], environ: Mapping[str, str], folder: str | None = None) -> Ending:
    """Run mpirun in front of this process's terminal; returns an Ending.

    Where a note in ``folder`` says that a rank has failed, mpirun has a few seconds to end the others. A signal to this
    process ends the job; so does its death (``keeper``). USR1 is passed on: it asks for a checkpoint.
    """
    asked: list[int] = []
    jobs: list[subprocess.Popen[bytes]] = []
    before: dict[signal.Signals, Any] = {}

    def pass_on(number: int, frame: FrameType | None) -> None:
        for job in jobs:
            job.send_signal(number)

    pipes = [os.pipe(), os.pipe()]
    keeper = Keeper(folder, pipes) if folder else None
    try:
        for number in ENDING:
            before[number] = signal.signal(number, lambda got, frame: asked.append(got))
        before[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, pass_on)
        launcher = os.getpid()
        jobs.append(subprocess.Popen(command, env=environ, stdout=pipes[0][1], stderr=pipes[1][1],
                                     preexec_fn=lambda: follow_parent(launcher)))
        if keeper:
            keeper.watch(jobs[0].pid)
        relays = [Relay(*pipe, stream) for stream, pipe in enumerate(pipes, 1)]
        code = _wait(jobs[0], asked, folder)
        boxes, named = _said(relays)
        if code and not asked and not named and folder and read_note(folder, BEGAN) is not None:
            _await_watcher(folder)
        # MPICH's mpirun now and then takes the code of a rank that left with 0 for that of the job, and not always says
        # that it has killed the others.
        failed = _BAD in boxes or bool(folder and has_cut_short(folder))
        return Ending(code or int(failed), asked[0] if asked else None, boxes, named)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if jobs and jobs[0].poll() is None:
            jobs[0].kill()
        if folder:
            leftovers.sweep(folder)
            assert keeper is not None   # as there is a folder
            keeper.release()


class Ending(NamedTuple):
    """How mpirun ended: its code, the signal by which this process was asked to end it (or None), and what was said.

    ``boxes``: what mpirun itself wrote, which was held back; ``named``: whether a rank that failed was named.
    """

    code: int
    ended_by: int | None = None
    boxes: str = ""
    named: bool = False

    @property
    def has_not_begun(self) -> bool:
        """Whether Open MPI's mpirun gave up before it started any rank: it may be started again."""
        return self.code != 0 and _NOT_BEGUN in self.boxes


class Relay:
    """Shows what comes from mpirun as it comes, all but mpirun's own words, in a thread: a terminal may be slow."""

    def __init__(self, start: int, end: int, stream: int) -> None:
        os.close(end)  # mpirun and its ranks have it
        self.boxes, self.named = Boxes(), False
        self._pipe, self._stream, self._last = start, stream, b""
        self.thread = threading.Thread(target=self._pass_on, daemon=True)
        self.thread.start()

    def _pass_on(self) -> None:
        while data := os.read(self._pipe, 1 << 16):
            self._show(self.boxes.passed(data))
        self._show(self.boxes.rest())
        os.close(self._pipe)

    def _show(self, data: bytes) -> None:
        # A name may come in two parts.
        self.named = self.named or _NAMED.search(self._last + data) is not None
        self._last = (self._last + data)[-_LONGEST_NAME:]
        try:
            while data:
                data = data[os.write(self._stream, data):]
        except OSError:
            pass  # a reader that has gone is no reason to end the job


def _said(relays: Sequence[Relay]) -> tuple[str, bool]:
    """(mpirun's own words, whether a rank was named), once all has been shown; a process that a rank left is not waited
    for."""
    for relay in relays:
        relay.thread.join(_LAST_WORDS_S)
    held = b"".join(relay.boxes.held for relay in relays).decode(errors="replace")
    return held, any(relay.named for relay in relays)


def _await_watcher(folder: str) -> None:
    """Where nobody has said who failed: the watcher of this machine's ranks may be about to (``ranks.watcher``)."""
    until = time.monotonic() + _LAST_WORDS_S
    while first_code(folder) is None and read_note(folder, VANISHED) is None and time.monotonic() < until:
        time.sleep(0.01)


def _wait(job: subprocess.Popen[bytes], asked: list[int], folder: str | None) -> int:
    """The code of mpirun, which is told to end when this process is, or when it does not end after a failure."""
    code = failed_at = None
    look_at, pause = 0.0, LOOKING_S
    while code is None and not asked:
        code = _ended(job, 0.1)
        now = time.monotonic()
        # After a preemption the others may still be saving.
        if failed_at is None and folder and first_code(folder) not in (None, PREEMPTED):
            failed_at = now
        if failed_at is not None and now > failed_at + AFTER_FAILURE_S:
            break
        if folder and now > look_at:
            leftovers.note(job.pid, folder)
            look_at, pause = now + pause, min(2 * pause, LONGEST_S)
    if code is None and asked[:1] == [signal.SIGINT]:
        code = _ended(job, OWN_SIGNAL_S)
    if code is None:
        job.send_signal(signal.SIGTERM)
        code = _ended(job, PATIENCE_S)
    if code is None:
        job.kill()
        code = job.wait()
    return code


def _ended(job: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return job.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None


def exit_code(code: int, ended_by: int | None, folder: str | None) -> int:
    """The launcher's exit code: what the first rank that failed ended with, where a rank has left a note of it.

    Without a note a watcher was killed itself, or mpirun failed on its own account. Open MPI gives 128 + signal for the
    first, MPICH the bare signal; Python gives a negative one where mpirun was killed. What the rank said before may
    tell.
    """
    if ended_by is not None:
        return 128 + ended_by
    if code == 0:
        return 0
    noted = first_code(folder)
    if noted is not None:
        return noted
    if read_note(folder, VANISHED):
        return PEER_LOST
    if code >= 0 and code not in (signal.SIGKILL, 128 + signal.SIGKILL):
        return code
    said = read_note(folder, SPOKE)
    return code_of(said) if said else PEER_LOST


def code_of(said: str) -> int:
    """The exit code that goes with a rank's last sentence (``rank_output.failing``), by the kind of error that it
    names."""
    number = re.search(r"^Abort\((\d+)\)|\): exit code (\d+)$", said)
    if number:
        return int(number[1] or number[2])
    kind = re.search(r"\): (\w+)", said)
    if kind and kind[1] == "KeyboardInterrupt":
        return 128 + signal.SIGINT
    return getattr(getattr(errors, kind[1] if kind else "", None), "exit_code", 1)


def cause(ending: Ending, folder: str | None) -> str:
    """Why a job failed, where no rank has said it: a rank that vanished, else mpirun's own words; nothing of others."""
    if not ending.code or ending.ended_by is not None or ending.named:
        return ""
    vanished = read_note(folder, VANISHED)
    return f"{vanished}\n" if vanished else ending.boxes


def last_line(job: Job, code: int, ended_by: int | None, folder: str | None, since: float = 0) -> str:
    """What the launcher says at the end of a job that has logs and failed; nothing of others.

    Where the first rank that failed was killed before it could be heard, its last words are looked for in the logs that
    were written ``since`` this job started.
    """
    if not code or ended_by is not None or not job.log_dir:
        return ""
    ending = f"fleet_mpi: the job ended with code {code}; what ranks wrote is in {job.log_dir}\n"
    if read_note(folder, SPOKE) is not None or job.echo == "all":
        return ending
    for role, number in job.roles:
        path = Path(job.log_dir, log_name(role, str(number)))
        text = path.read_bytes()[-(1 << 14):] if path.exists() and path.stat().st_mtime > since else b""
        if failing(text):
            lines = text.decode(errors="replace").splitlines()[-LAST_LINES:]
            return f"fleet_mpi: {role} {number} failed; the last words in {path}:\n" + "".join(
                f"    {line}\n" for line in lines) + ending
    return ending


def cores() -> int:
    """The cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
