"""``fluid.incubate.fleet``: fleet of 1.x, one singleton per kind of training."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.incubate.fleet import base, collective, parameter_server, utils

__getattr__ = _missing_name("paddle.fluid.incubate.fleet", globals(), {
    "role_maker": "fleet_mpi.fluid.incubate.fleet.base.role_maker"})
