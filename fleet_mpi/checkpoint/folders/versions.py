"""Versions of a training that is saved on its way: a folder per step, there as a whole or not at all.

``FOLDER/step-120`` has what was saved after 120 steps. Knows folders only; what lies in them is the writer's.
"""

import os
import re
import secrets
import shutil
from collections.abc import Callable
from typing import NamedTuple

from fleet_mpi.checkpoint.folders import storage
from fleet_mpi.errors import UsageError

_NAME = re.compile(r"step-(\d+)")
_UNFINISHED = re.compile(r"\.step-\d+\.[0-9a-f]{16}\.part")


class Version(NamedTuple):
    """What was saved after a number of steps, and where."""

    step: int
    path: str


def newest(folder: str) -> Version | None:
    """The version of a folder with most steps, or None."""
    found = _versions(folder)
    return found[-1] if found else None


def save(folder: str, step: int, write: Callable[[str], None], keep: int = 2) -> Version:
    """Let ``write(path)`` fill a folder that then becomes the version of this step; returns it.

    Older versions than the last ``keep`` go after that. For one process at a time. A version that is there already
    stays: a training that makes no step writes nothing new.
    """
    if step < 0 or keep < 1:
        raise UsageError(f"a version needs a step from 0 on and keeps itself at least, got step {step!r}, keep "
                         f"{keep!r}")
    made = Version(step, os.path.join(folder, f"step-{step}"))
    with storage.refusals("save into", folder):
        if not os.path.isdir(made.path):
            _write(os.path.join(folder, f".step-{step}.{secrets.token_hex(8)}.part"), write, made.path)
        _tidy(folder, keep)
    return made


def _write(beside: str, write: Callable[[str], None], path: str) -> None:
    os.makedirs(beside)
    try:
        write(beside)
        os.rename(beside, path)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    storage.sync_folders([os.path.dirname(path)])


def _versions(folder: str) -> list[Version]:
    """Those of a folder, by step."""
    if not os.path.isdir(folder):
        return []
    named = [(_NAME.fullmatch(name), os.path.join(folder, name)) for name in os.listdir(folder)]
    return sorted(Version(int(match[1]), path) for match, path in named if match and os.path.isdir(path))


def _tidy(folder: str, keep: int) -> None:
    """Remove old versions, and what a process that was killed while it wrote has left behind."""
    for old in _versions(folder)[:-keep]:
        # Half of a version must not look like one.
        os.rename(old.path, os.path.join(folder, f".step-{old.step}.{secrets.token_hex(8)}.part"))
    for name in os.listdir(folder):
        if _UNFINISHED.fullmatch(name):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
