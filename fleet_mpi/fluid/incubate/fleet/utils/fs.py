"""``fluid.incubate.fleet.utils.fs``: files of this machine."""

from fleet_mpi.checkpoint.folders.local_files import LocalFS
from fleet_mpi.data.hdfs import HDFSClient
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.utils.fs", globals())
