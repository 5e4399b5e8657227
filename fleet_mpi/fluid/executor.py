"""``fluid.executor``: running programs."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.dataset_loop import FetchHandler
from fleet_mpi.program.executor import Executor
from fleet_mpi.program.scope import global_scope, scope_guard

__getattr__ = _missing_name("paddle.fluid.executor", globals(), {"as_numpy": "fleet_mpi.program.scope:as_numpy"})
