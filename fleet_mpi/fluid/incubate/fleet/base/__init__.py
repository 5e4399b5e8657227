"""``fluid.incubate.fleet.base``: role makers and what all kinds of fleet share."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.incubate.fleet.base import fleet_base, mode, role_maker

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.base", globals(), {
    name: f"fleet_mpi.fluid.incubate.fleet.base.fleet_base:{name}"
    for name in ("Fleet", "DistributedOptimizer", "Mode")})
