"""The 1.x fleet whose servers keep growing tables of rows."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.optimizer import PSLibOptimizer as DownpourOptimizer
from fleet_mpi.fleet.pslib import PSLibFleet as PSLib
from fleet_mpi.fleet.pslib import fleet_embedding
from fleet_mpi.fleet.pslib import pslib_fleet as fleet
from fleet_mpi.program.layers import embedding as _layers

_fleet_embedding, _fleet_embedding_v2 = map(_layers.any_height(), (_layers.embedding, _layers.embedding_v2))
__getattr__ = _missing_name("paddle.fluid.incubate.fleet.parameter_server.pslib", globals())
