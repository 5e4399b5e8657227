"""``fluid.dataset``: datasets read from files through pipe commands."""

from fleet_mpi.data.dataset import DatasetBase, DatasetFactory, InMemoryDataset, QueueDataset
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.fluid.dataset", globals())
