"""``fluid.contrib.mixed_precision.decorator``: the function that wraps an optimizer."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.build.amp import OptimizerWithMixedPrecision, decorate

__getattr__ = _missing_name("paddle.fluid.contrib.mixed_precision.decorator", globals())
