"""``paddle.distributed.fleet.runtime.runtime_base``: known by name only."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.distributed.fleet.runtime import _RUNTIME

__getattr__ = _missing_name("paddle.distributed.fleet.runtime.runtime_base", globals(),
                            refused={"RuntimeBase": _RUNTIME})
