"""``fluid.executor``: running programs."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.engine.dataset_loop import FetchHandler
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope, scope_guard

__getattr__ = _missing_name("paddle.fluid.executor", globals(), {
    "as_numpy": "fleet_mpi.program.engine.scope", "_fetch_var": "fleet_mpi.program.engine.scope:value_of",
    **dict.fromkeys(("has_feed_operators", "has_fetch_operators"), "fleet_mpi.program.build.feed_fetch")})
