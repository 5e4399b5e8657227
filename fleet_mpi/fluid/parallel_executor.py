"""``fluid.parallel_executor``: the oldest way to run on several devices."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.engine.compiled import BuildStrategy, ExecutionStrategy, ParallelExecutor

__getattr__ = _missing_name("paddle.fluid.parallel_executor", globals())
