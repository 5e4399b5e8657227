"""``fluid.incubate.fleet.parameter_server.mode``: the ways to train with servers, by number."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.transpiler_strategies import DistributedMode

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.parameter_server.mode", globals())
