"""``fluid.contrib.reader.distributed_reader``: every worker of a job reads its own batches."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.batch_sampling import distributed_batch_reader

__getattr__ = _missing_name("paddle.fluid.contrib.reader.distributed_reader", globals())
