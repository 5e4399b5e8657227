"""``paddle.distributed.fleet.base.role_maker``: who this process is, with the argument lists of 2.x."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.role_makers import PaddleCloudRoleMaker, Role
from fleet_mpi.fleet.role_makers import RoleMaker as RoleMakerBase
from fleet_mpi.fleet.role_makers import UserDefinedRoleMaker2 as UserDefinedRoleMaker

__getattr__ = _missing_name("paddle.distributed.fleet.base.role_maker", globals())
