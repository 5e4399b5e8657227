"""``fluid.incubate.fleet.utils.utils``: saved programs, read and compared."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.saved_programs import (check_pruned_program_vars, check_saved_vars_try_dump, graphviz,
                                            load_program,
                                            parse_program, program_type_trans, save_program)

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.utils.utils", globals())
