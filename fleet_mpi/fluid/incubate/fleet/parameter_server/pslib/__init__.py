"""The 1.x fleet whose servers keep growing tables of rows."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.facade import PSLibFleet as PSLib
from fleet_mpi.fleet.facade import pslib_fleet as fleet
from fleet_mpi.fleet.optimizer import PSLibOptimizer as DownpourOptimizer

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.parameter_server.pslib", globals())
