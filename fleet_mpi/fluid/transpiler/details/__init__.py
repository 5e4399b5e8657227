"""``fluid.transpiler.details``: programs as text, and ops by what they read and write."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.transpiler.details.program_utils import (delete_ops, find_op_by_input_arg, find_op_by_output_arg,
                                                               program_to_code)

__getattr__ = _missing_name("paddle.fluid.transpiler.details", globals())
