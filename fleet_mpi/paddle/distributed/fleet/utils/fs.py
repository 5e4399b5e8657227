"""``paddle.distributed.fleet.utils.fs``: files of this machine; HDFS is known by name only."""

from fleet_mpi.checkpoint.folders.local_files import LocalFS
from fleet_mpi.data.hdfs import HDFSClient
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.distributed.fleet.utils.fs", globals())
