"""``paddle.distributed.fleet.base.util_factory``: what workers do together."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.together import Util as UtilBase
from fleet_mpi.fleet.together import UtilFactory

__getattr__ = _missing_name("paddle.distributed.fleet.base.util_factory", globals())
