"""``fluid.incubate.fleet.utils``: files of distributed file systems."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.incubate.fleet.utils import fs, hdfs

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.utils", globals(), {
    name: f"fleet_mpi.fluid.incubate.fleet.utils.{name}" for name in (
        "fleet_barrier_util", "fleet_util", "http_server", "utils")})
