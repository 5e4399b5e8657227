"""``fluid.transpiler.memory_optimization_transpiler``: nothing to do, temporaries share memory in any case."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.transpiler import memory_optimize, release_memory

__getattr__ = _missing_name("paddle.fluid.transpiler.memory_optimization_transpiler", globals())
