"""``fluid.contrib.reader``: readers for the workers of a job."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.contrib.reader.distributed_reader import distributed_batch_reader

__getattr__ = _missing_name("paddle.fluid.contrib.reader", globals(), refused={
    "ctr_reader": "it was gone before 1.6; take fluid.DatasetFactory().create_dataset"})
