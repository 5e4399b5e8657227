"""``paddle.distributed.fleet.utils``: inference by a worker."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.distributed.fleet.utils import ps_util

__getattr__ = _missing_name("paddle.distributed.fleet.utils", globals())
