"""``fluid.incubate.fleet.utils.hdfs``: HDFS, known by name only."""

from fleet_mpi.data.hdfs import HDFSClient
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.utils.hdfs", globals())
