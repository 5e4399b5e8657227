"""``fluid.layers.collective``: what workers compute together."""

from fleet_mpi.runtime.ops.combining import (
    _allreduce,
    _broadcast,
    _c_allgather,
    _c_allreduce,
    _c_broadcast,
    _c_reducescatter,
    _c_sync_calc_stream,
    _c_sync_comm_stream,
)
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.fluid.layers.collective", globals())
