"""``paddle.distributed.fleet.meta_optimizers.sharding``: saving what one process holds whole."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.distributed.fleet.meta_optimizers.sharding import utils

__getattr__ = _missing_name("paddle.distributed.fleet.meta_optimizers.sharding", globals())
