"""``fluid.incubate.fleet.base.role_maker``: who this process is, with the argument lists of 1.x."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.role_makers import (GeneralRoleMaker, MockBarrier, MPISymetricRoleMaker, PaddleCloudRoleMaker,
                                         Role,
                                         UserDefinedCollectiveRoleMaker, UserDefinedRoleMaker)
from fleet_mpi.fleet.role_makers import RoleMaker as RoleMakerBase

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.base.role_maker", globals())
