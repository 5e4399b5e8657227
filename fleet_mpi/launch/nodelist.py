"""The nodes of a Slurm job, from the short form in which Slurm lists them."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import product
from typing import TYPE_CHECKING

from fleet_mpi.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

_ANSWER_S = 10


def nodes(nodelist: str, scontrol: str | None = None) -> tuple[str, ...]:
    """The names in a list, as Slurm itself expands it (``scontrol show hostnames``) where that is installed."""
    scontrol = scontrol or shutil.which("scontrol")
    if nodelist and scontrol:
        try:
            asked = subprocess.run([scontrol, "show", "hostnames", nodelist], capture_output=True, text=True,
                                   timeout=_ANSWER_S,
                                   stdin=subprocess.DEVNULL)
            if asked.returncode == 0 and asked.stdout.split():
                return tuple(asked.stdout.split())
        except (OSError, subprocess.TimeoutExpired):
            pass  # its rules are known here too
    return expanded(nodelist)


def expanded(nodelist: str) -> tuple[str, ...]:
    """``n[1-2,07],m`` are n1, n2, n07 and m; with several brackets in a name, the last one varies fastest."""
    names = re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", nodelist)
    if ",".join(names) != nodelist:
        raise _refusal(nodelist, nodelist)
    return tuple("".join(parts) for name in names for parts in product(*_parts(name, nodelist)))


def _parts(name: str, nodelist: str) -> Iterator[list[str]]:
    """For each piece of a name, what it may be: itself, or the numbers in its brackets."""
    for inside, plain in re.findall(r"\[([^\]]*)\]|([^\[]+)", name):
        yield [plain] if plain else [number for part in inside.split(",") for number in _numbers(part, nodelist)]


def _numbers(part: str, nodelist: str) -> list[str]:
    """The numbers of a range, as wide as its first one."""
    low, dash, high = part.partition("-")
    if not low.isdecimal() or dash and not high.isdecimal():
        raise _refusal(nodelist, part)
    return [f"{number:0{len(low)}d}" for number in range(int(low), int(high or low) + 1)]


def _refusal(nodelist: str, part: str) -> EnvironmentProblem:
    return EnvironmentProblem(f"SLURM_JOB_NODELIST={nodelist}: expected names like n[1-4,7],rack[1-2]node[01-16], got "
                              f"{part!r} in it")
