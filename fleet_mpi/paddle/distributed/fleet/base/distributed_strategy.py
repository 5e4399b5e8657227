"""``paddle.distributed.fleet.base.distributed_strategy``: how a job trains."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.strategy import DistributedStrategy

__getattr__ = _missing_name("paddle.distributed.fleet.base.distributed_strategy", globals())
