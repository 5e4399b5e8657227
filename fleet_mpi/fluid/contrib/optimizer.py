"""``fluid.contrib.optimizer``: momentum, whose weight decay the original fuses into the update."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.optimizers.plain import Momentum

__getattr__ = _missing_name("paddle.fluid.contrib.optimizer", globals())
