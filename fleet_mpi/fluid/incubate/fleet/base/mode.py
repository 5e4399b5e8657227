"""``fluid.incubate.fleet.base.mode``: the kinds of fleet, by number."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.facade import Mode

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.base.mode", globals())
