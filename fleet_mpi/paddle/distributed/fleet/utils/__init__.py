"""``paddle.distributed.fleet.utils``: inference by a worker."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.distributed.fleet.utils import ps_util

__getattr__ = _missing_name("paddle.distributed.fleet.utils", globals(), {
    "LocalFS": "fleet_mpi.checkpoint.folders.local_files:LocalFS", "HDFSClient": "fleet_mpi.data.hdfs:HDFSClient",
    "DistributedInfer": "fleet_mpi.fleet.inference:DistributedInfer",
    **{name: f"fleet_mpi.paddle.distributed.fleet.utils.{name}" for name in ("fs", "http_server")}},
    {"recompute": "there is no eager mode; set DistributedStrategy.recompute and its checkpoints"})
