"""``paddle.distributed``: fleet of 2.x, its datasets, and who this process is."""

from fleet_mpi.data.distributed_datasets import InMemoryDataset, QueueDataset
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.entries import CountFilterEntry, ProbabilityEntry
from fleet_mpi.paddle.distributed import fleet


def get_rank():
    """The number of this worker."""
    return 0


def get_world_size():
    """How many workers there are."""
    return 1


__getattr__ = _missing_name("paddle.distributed", globals())
