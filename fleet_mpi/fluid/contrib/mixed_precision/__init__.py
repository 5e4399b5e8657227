"""``fluid.contrib.mixed_precision``: float16 where it is safe, with a scaled loss."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.contrib.mixed_precision import decorator
from fleet_mpi.program.build.amp import AutoMixedPrecisionLists, decorate

__getattr__ = _missing_name("paddle.fluid.contrib.mixed_precision", globals())
