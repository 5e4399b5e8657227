"""``fluid.incubate.fleet.utils.fs``: where checkpoints are kept."""

from fleet_mpi.checkpoint.local_files import LocalFS
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.utils.fs", globals())
