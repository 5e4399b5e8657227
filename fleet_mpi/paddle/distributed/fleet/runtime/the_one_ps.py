"""``paddle.distributed.fleet.runtime.the_one_ps``: known by name only."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.distributed.fleet.runtime import _RUNTIME

__getattr__ = _missing_name("paddle.distributed.fleet.runtime.the_one_ps", globals(), refused=dict.fromkeys(
    ("Accessor", "CommonAccessor", "CommonTable", "Table", "SparseTable", "DenseTable", "TheOnePSRuntime"), _RUNTIME))
