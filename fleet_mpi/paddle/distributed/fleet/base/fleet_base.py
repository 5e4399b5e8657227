"""``paddle.distributed.fleet.base.fleet_base``: the class of the fleet object."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.paddle2 import Fleet2 as Fleet
from fleet_mpi.fleet.paddle2 import paddle_fleet as fleet

__getattr__ = _missing_name("paddle.distributed.fleet.base.fleet_base", globals())
