"""``fluid.incubate.fleet.collective``: training without servers."""

from fleet_mpi.checkpoint.folders.local_files import LocalFS
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.collective_checkpoints import TrainStatus
from fleet_mpi.fleet.collective_strategy import DistributedStrategy
from fleet_mpi.fleet.facade import CollectiveFleet as Collective
from fleet_mpi.fleet.facade import CollectiveOptimizer
from fleet_mpi.fleet.facade import collective_fleet as fleet

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.collective", globals())
