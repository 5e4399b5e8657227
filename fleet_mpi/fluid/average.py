"""``fluid.average``: running means."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.metrics.average import WeightedAverage

__getattr__ = _missing_name("paddle.fluid.average", globals())
