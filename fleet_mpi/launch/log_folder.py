"""The folder of a job's logs: its own as long as the job runs. Two jobs that ask for the same one get one each."""

from __future__ import annotations

import fcntl
import os
from typing import NamedTuple

from fleet_mpi import notices
from fleet_mpi.errors import EnvironmentProblem

_MOST = 1000  # of jobs at a time that want the same folder


class LogFolder(NamedTuple):
    """A folder that this job alone writes to, while ``lock`` is open; empty where the job keeps no logs."""

    path: str = ""
    lock: int | None = None

    def release(self) -> None:
        """Another job may have it."""
        if self.lock is not None:
            os.close(self.lock)


def claim(path: str, asked_for: bool) -> LogFolder:
    """The folder for the logs of a job that wants them in ``path``, or beside it where another job writes there now.

    One that cannot be made or written is an error if the user has ``asked_for`` it; else the job keeps no logs.
    """
    if not path:
        return LogFolder()
    try:
        return _free(path)
    except OSError as error:
        said = f"the folder of the logs cannot be written: {error}"
        if asked_for:
            raise EnvironmentProblem(f"{said}; say another by --log_dir, or --log_dir '' for none") from None
        notices.log().warning(f"{said}: this job keeps no logs (--log_dir says another folder)")
        return LogFolder()


def _free(path: str) -> LogFolder:
    for number in range(1, _MOST):
        other = path if number == 1 else f"{path.rstrip(os.sep)}.{number}"
        os.makedirs(other, exist_ok=True)
        if not os.access(other, os.W_OK | os.X_OK):
            raise PermissionError(f"{other}: no permission to write")
        lock = os.open(other, os.O_RDONLY | os.O_DIRECTORY)
        if _locked(lock):
            if number > 1:
                notices.log().warning(f"another job writes its logs to {path} now: those of this one are in {other}")
            return LogFolder(other, lock)
        os.close(lock)
    raise OSError(f"{path}: {_MOST - 1} other jobs write there")


def _locked(folder: int) -> bool:
    """Lock the folder for this process, if it is free; the kernel releases the lock when the process ends."""
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks: as before, the last one writes
    return True
