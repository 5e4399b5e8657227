"""A process that outlives the launcher: if the launcher is killed, it sees to it that the job ends and nothing is left.

The kernel asks mpirun to end when the launcher dies (``follow_parent``), and mpirun ends its ranks. The keeper kills it
where it does not come to that, and sweeps what the job left on this machine. It waits in a session of its own: who
kills the launcher's process group does not kill it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from fleet_mpi.launch import leftovers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PATIENCE_S = 10  # for mpirun to end its ranks, before it is killed itself
_DONE = b"."
_LOOKING_S = 0.05
_SET_PARENT_DEATH_SIGNAL = 1  # of linux/prctl.h


class Keeper:
    """Keeps watch over one job, from before its mpirun is started until ``release``.

    ``pipes``: (read end, write end) of mpirun's output. A mpirun whose words nobody reads is killed by them, in the
    middle of its cleaning up: so the keeper reads them when the launcher does not any more.
    """

    def __init__(self, folder: str, pipes: Iterable[tuple[int, int]] = ()) -> None:
        heard, self._line = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            _keep(heard, [self._line, *(end for _, end in pipes)], folder, [start for start, _ in pipes])
        os.close(heard)

    def watch(self, mpirun: int) -> None:
        """Tell it the process number of mpirun."""
        self._tell(b"%d\n" % mpirun)

    def release(self) -> None:
        """The job has ended, and the launcher has seen to everything."""
        self._tell(_DONE)
        os.close(self._line)
        os.waitpid(self._process, 0)

    def _tell(self, data: bytes) -> None:
        try:
            os.write(self._line, data)
        except OSError:
            pass  # it was killed: then the kernel's signal to mpirun has to do


def follow_parent(parent: int) -> None:
    """In a child, before it becomes another program: be asked to end when ``parent``, which forked it, dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGTERM)


def _keep(heard: int, others: Iterable[int], folder: str, output: list[int]) -> None:
    """In the keeper: wait until the launcher is released or dead; ``others``: files that are not for this process."""
    try:
        os.setsid()
        for file in others:
            os.close(file)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        mpirun, told = None, b""
        while data := os.read(heard, 64):
            told += data
            mpirun = mpirun or Process.numbered(told)
        if not told.endswith(_DONE):
            _end_job(mpirun, folder, output)
    except BaseException as error:
        os.write(2, f"fleet_mpi: the launcher was killed, and its job could not be ended: {error!r}\n".encode())
    finally:
        os._exit(0)


def _end_job(mpirun: Process | None, folder: str, output: list[int]) -> None:
    def meanwhile() -> None:
        leftovers.note(mpirun.number, folder)  # type: ignore[union-attr]  # called where there is one
        for file in output:
            _drain(file)

    for file in output:
        os.set_blocking(file, False)
    if mpirun and not mpirun.ends_within(PATIENCE_S, meanwhile):
        os.kill(mpirun.number, signal.SIGKILL)
        mpirun.ends_within(PATIENCE_S, meanwhile)
    leftovers.sweep(folder)
    shutil.rmtree(folder, ignore_errors=True)
    os.write(2, b"fleet_mpi: the launcher was killed; its job has been ended\n")


def _drain(file: int) -> None:
    try:
        while os.read(file, 1 << 16):
            pass
    except BlockingIOError:
        pass


class Process(NamedTuple):
    """A process that need not be a child of this one; the start time tells it from a later one of its number."""

    number: int
    born: str

    @classmethod
    def numbered(cls, text: bytes) -> Process | None:
        """The process whose number is the first line of ``text``; None where that is not whole, or the process has
        ended."""
        number, end, _ = text.partition(b"\n")
        state = _state(int(number)) if end else None
        return cls(int(number), state[1]) if state else None

    def ends_within(self, seconds: float, meanwhile: Callable[[], object]) -> bool:
        """Whether it has ended within so many seconds; ``meanwhile()`` is called again and again as long as it
        lives."""
        until = time.monotonic() + seconds
        while (_state(self.number) or ("", ""))[1] == self.born:
            meanwhile()
            if time.monotonic() > until:
                return False
            time.sleep(_LOOKING_S)
        return True


def _state(process: int) -> tuple[str, str] | None:
    """(state, birth) of a process that runs; None where it does not, or is only waited for by its parent."""
    try:
        with open(f"/proc/{process}/stat") as file:
            words = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if words[0] in "ZX" else (words[0], words[19])
