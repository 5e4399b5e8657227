"""``paddle.distributed.fleet.utils.ps_util``: inference by a worker."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.inference import DistributedInfer

__getattr__ = _missing_name("paddle.distributed.fleet.utils.ps_util", globals())
