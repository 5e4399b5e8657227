"""Which GPU is whose: one rank, one device.

``FLAGS_selected_gpus`` names the devices that a machine's ranks may use (a launcher's ``--gpus``); a rank takes the one
with its own number among the ranks of its machine. Knows no GPU library: how many devices there are is handed in.
"""

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem

# The MPI launcher's word comes first: within a batch script SLURM_LOCALID is that of the script, on every rank.
_NUMBERS = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")


def local_rank() -> int | None:
    """The number of this process among the job's on its machine; None where no launcher says it."""
    for name in _NUMBERS:
        if settings.get(name) >= 0:
            return settings.get(name)
    return None


def selected() -> list[int]:
    """The devices of FLAGS_selected_gpus, as numbers; an empty list where it is not set."""
    text = settings.get("FLAGS_selected_gpus")
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isdigit() for word in words):
        raise EnvironmentProblem(f"FLAGS_selected_gpus={text!r}: expected numbers of GPUs, as in 0 or 0,1")
    return [int(word) for word in words]


def own_device(count: int) -> int:
    """The number of this rank's device, with ``count`` of them to be seen; ranks beyond the last begin again at 0."""
    number, chosen = local_rank() or 0, selected()
    return chosen[number % len(chosen)] if chosen else number % max(1, count)
