"""``paddle.incubate.distributed``: below it is the fleet of 1.x."""

from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.incubate.distributed", globals(), {"fleet": "fleet_mpi.fluid.incubate.fleet"})
