"""Which GPU is whose: one rank, one device.

``FLAGS_selected_gpus`` names the devices that a machine's ranks may use (a launcher's ``--gpus``); a rank takes the one
with its own number among the ranks of its machine. That number comes from MPI once the rank has joined a job, and from
the launcher's variables before. Knows no GPU library: how many devices there are is handed in, or counted in /dev or,
where it shows none, by the driver (``nvml``).
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.ranks import nvml

if TYPE_CHECKING:
    from collections.abc import Mapping

SELECTED = "FLAGS_selected_gpus"
FOLDER = "/dev"
# The MPI launcher's word comes first: within a batch script SLURM_LOCALID is that of the script, on every rank.
HINTS = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "MV2_COMM_WORLD_LOCAL_RANK",
         "MVP_COMM_WORLD_LOCAL_RANK", "PMI_LOCAL_RANK", "SLURM_LOCALID")

_by_mpi: int | None = None    # this rank's number on its machine, once MPI has said it
_exported: str | None = None  # what FLAGS_selected_gpus was set to here


def local_rank() -> int | None:
    """The number of this process among the job's on its machine; None where nobody says it.

    In a job that was joined, the ranks of the same role count: workers share the devices, servers need none.
    """
    if _by_mpi is not None:
        return _by_mpi
    return next((settings.get(name) for name in HINTS if settings.get(name) >= 0), None)


def joined(number: int) -> None:
    """Take the local rank from MPI from now on, and let FLAGS_selected_gpus agree."""
    global _by_mpi
    _by_mpi = number
    export_own()


def selected() -> list[int]:
    """The devices of FLAGS_selected_gpus, as numbers; an empty list where it is not set."""
    text = settings.get(SELECTED)
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isdigit() for word in words):
        raise EnvironmentProblem(f"{SELECTED}={text!r}: expected numbers of GPUs, as in 0 or 0,1")
    return [int(word) for word in words]


def own_device(count: int) -> int:
    """The number of this rank's device, with ``count`` of them to be seen; ranks beyond the last begin again at 0."""
    number, chosen = local_rank() or 0, selected()
    return chosen[number % len(chosen)] if chosen else number % max(1, count)


def export_own() -> None:
    """Set FLAGS_selected_gpus to the device of this rank, where nobody has and the machine shows GPUs.

    Scripts write ``CUDAPlace(int(os.environ.get("FLAGS_selected_gpus", 0)))``: without it all ranks would use GPU 0.
    """
    global _exported
    given = settings.get(SELECTED)
    if given and given != _exported or local_rank() is None:
        return
    count = len(visible(os.environ, FOLDER))
    if count:
        os.environ.pop(SELECTED, None)  # what was exported before counts no more
        _exported = os.environ[SELECTED] = str(own_device(count))


def visible(environ: Mapping[str, str], folder: str) -> tuple[str, ...]:
    """The CUDA devices that this process may use by its variables, files and driver, numbered as it sees them."""
    count = _device_files(folder) or nvml.device_count()
    if count and "CUDA_VISIBLE_DEVICES" in environ:
        words = environ["CUDA_VISIBLE_DEVICES"].replace(",", " ").split()
        count = sum(word != "-1" for word in words)
    return tuple(map(str, range(count)))


def _device_files(folder: str) -> int:
    try:
        return sum(bool(re.fullmatch(r"nvidia\d+", name)) for name in os.listdir(folder))
    except OSError:
        return 0
