"""``fluid.incubate``: fleet of 1.x and the generators of multi-slot data."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.incubate import data_generator, fleet

__getattr__ = _missing_name("paddle.fluid.incubate", globals(), {"checkpoint": "fleet_mpi.fluid.incubate.checkpoint"})
