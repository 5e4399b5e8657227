"""``paddle.distributed.fleet.base``: role makers and strategies by their modules."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.distributed.fleet.base import distributed_strategy, role_maker

__getattr__ = _missing_name("paddle.distributed.fleet.base", globals(), {
    name: f"fleet_mpi.paddle.distributed.fleet.base.{name}" for name in (
        "fleet_base", "private_helper_function", "util_factory")})
