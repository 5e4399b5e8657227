"""``fluid.profiler``: where the time of a run goes."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.engine.profiler import cuda_profiler, profiler, reset_profiler, start_profiler, stop_profiler

__getattr__ = _missing_name("paddle.fluid.profiler", globals())
