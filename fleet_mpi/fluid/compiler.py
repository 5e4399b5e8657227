"""``fluid.compiler``: programs with strategies."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.engine.compiled import BuildStrategy, CompiledProgram, ExecutionStrategy

__getattr__ = _missing_name("paddle.fluid.compiler", globals())
