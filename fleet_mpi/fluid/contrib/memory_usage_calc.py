"""``fluid.contrib.memory_usage_calc``: how much memory a program needs."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.engine.memory_usage import memory_usage

__getattr__ = _missing_name("paddle.fluid.contrib.memory_usage_calc", globals())
