"""``fluid.incubate.fleet.utils.fleet_barrier_util``: all workers wait for each other."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.fleet_util import check_all_trainers_ready

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.utils.fleet_barrier_util", globals())
