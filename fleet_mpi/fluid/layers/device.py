"""``fluid.layers.device``: the devices of a program."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.control_flow import get_places

__getattr__ = _missing_name("paddle.fluid.layers.device", globals())
