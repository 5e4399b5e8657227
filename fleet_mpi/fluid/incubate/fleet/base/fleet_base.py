"""``fluid.incubate.fleet.base.fleet_base``: what all kinds of fleet share."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.facade import Fleet, Mode
from fleet_mpi.fleet.optimizer import DistributedOptimizer

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.base.fleet_base", globals())
