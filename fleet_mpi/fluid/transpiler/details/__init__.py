"""``fluid.transpiler.details``: programs as text."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.transpiler.details.program_utils import program_to_code

__getattr__ = _missing_name("paddle.fluid.transpiler.details", globals())
