"""Checkpoints of the 1.x collective fleet: numbered folders, each there as a whole or not at all.

``PATH/__paddle_fleet_checkpoint__.3`` holds all that persists of a program in one file, and how far training was
(JSON). Worker 0 writes and removes; all workers load what worker 0 sees.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from fleet_mpi.checkpoint.folders.local_files import LocalFS
from fleet_mpi.checkpoint.folders.replacing import replacing
from fleet_mpi.checkpoint.loading import load_all
from fleet_mpi.checkpoint.saving import save_all
from fleet_mpi.checkpoint.sources import Source
from fleet_mpi.checkpoint.values import ScopeValues
from fleet_mpi.errors import CheckpointDamaged, NotBuilt, UsageError

if TYPE_CHECKING:
    from typing import Any

    from fleet_mpi.fleet.roles import RoleMaker
    from fleet_mpi.program.graph.program import Program

PREFIX = "__paddle_fleet_checkpoint__"
VALUES = "_paddle_fleet_param__"
STATUS = "fleet_train_status"
UNFINISHED = ".tmp"


class TrainStatus:
    """How far training is: the number of the last pass that is done, -1 before the first."""

    def __init__(self, epoch_no: int = -1) -> None:
        self._epoch_no = epoch_no

    @property
    def epoch_no(self) -> int:
        """The number of the last pass that is done."""
        return self._epoch_no

    @epoch_no.setter
    def epoch_no(self, number: int) -> None:
        self._epoch_no = number

    def next(self) -> int:
        """The pass to begin with."""
        return self._epoch_no + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainStatus) and self._epoch_no == other._epoch_no

    def __hash__(self) -> int:
        return hash(self._epoch_no)

    def __repr__(self) -> str:
        return f"TrainStatus(epoch_no={self._epoch_no})"


class CheckpointSaver:
    """The numbered checkpoints in folders, looked at without a fleet."""

    def __init__(self, fs: Any = None) -> None:
        self._files = _local(fs)

    def get_checkpoint_no(self, root_path: str) -> list[int]:
        """The numbers of all finished checkpoints, lowest first."""
        return _numbers(root_path)

    def get_last_checkpoint_no(self, root_path: str) -> int:
        """The number of the newest one, -1 where there is none."""
        return newest(root_path)


def save(role: RoleMaker, path: str, status: TrainStatus, program: Program, files: Any = None, keeps_all: bool = True,
         runs: Any = None) -> int | None:
    """Worker 0: write the next checkpoint and return its number; other workers have nothing to do (None).

    With ``keeps_all=False`` older checkpoints go once the new one is there. ``runs`` is what workers run, where it is
    not the program itself.
    """
    files = _local(files)
    if not isinstance(status, TrainStatus):
        raise UsageError(f"save_check_point: expected a TrainStatus, got {type(status).__name__}")
    if not role.is_first_worker():
        return None
    number = newest(path) + 1
    folder = _folder(path, number)
    beside = folder + UNFINISHED
    files.delete(beside)
    values = ScopeValues(program)
    save_all(values, beside, VALUES, runs or values.program)
    with replacing(os.path.join(beside, STATUS)) as stream:
        stream.write(json.dumps({"epoch_no": status._epoch_no}).encode())
    files.rename(beside, folder)
    if not keeps_all:
        clean(role, path, files)
    return number


def load(role: RoleMaker, path: str, program: Program, files: Any = None, may_be_empty: bool = True,
         runs: Any = None) -> TrainStatus | None:
    """Collective: give all workers the values of worker 0's newest checkpoint; returns its TrainStatus.

    None where there is no checkpoint, or a UsageError if ``may_be_empty`` is False.
    """
    _local(files)
    number = int(role._all_gather(newest(path))[0])
    if number < 0:
        if not may_be_empty:
            raise UsageError(f"load_check_point: there is no checkpoint in {path}")
        return None
    folder = _folder(path, number)
    load_all(Source(folder, [VALUES]), program, runs)
    status = _status(folder)
    # Who is ahead might save again, and remove what others still read.
    role.barrier_worker()
    return status


def clean(role: RoleMaker, path: str, files: Any = None, keep: int = 1) -> None:
    """Worker 0: remove all checkpoints but the newest ``keep`` (one at least), and what was never finished."""
    files = _local(files)
    if role.is_first_worker():
        for number in _numbers(path)[:-max(1, keep)]:
            files.delete(_folder(path, number))
        for name in files.list_dirs(path):
            if name.startswith(PREFIX + ".") and name.endswith(UNFINISHED):
                files.delete(os.path.join(path, name))


def newest(path: str) -> int:
    """The highest number of a checkpoint in a folder, -1 where there is none."""
    return max(_numbers(path), default=-1)


def _numbers(path: str) -> list[int]:
    """Of all finished checkpoints, lowest first."""
    ends = [name.removeprefix(PREFIX + ".") for name in LocalFS().list_dirs(path) if name.startswith(PREFIX + ".")]
    return sorted(int(end) for end in ends if end.isdecimal())


def _folder(path: str, number: int) -> str:
    return os.path.join(path, f"{PREFIX}.{number}")


def _status(folder: str) -> TrainStatus:
    path = os.path.join(folder, STATUS)
    try:
        with open(path, "rb") as stream:
            return TrainStatus(int(json.load(stream)["epoch_no"]))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CheckpointDamaged(f"{path}: cannot read how far training was: {error!r}; remove {folder} to take the "
                                f"checkpoint before") from None


def _local(files: Any) -> LocalFS:
    if files is None or isinstance(files, LocalFS):
        return files or LocalFS()
    raise NotBuilt(f"checkpoints are kept in folders: expected fs=LocalFS(), got {type(files).__name__}; give a path "
                   f"that all machines see")
