"""The 1.x parameter-server fleet: ``fleet`` and the options it takes."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.facade import TranspilerFleet as DistributedTranspiler
from fleet_mpi.fleet.facade import transpiler_fleet as fleet
from fleet_mpi.fleet.optimizer import TranspilerOptimizer
from fleet_mpi.fluid.incubate.fleet.parameter_server.distribute_transpiler import distributed_strategy
from fleet_mpi.transpile.distribute_transpiler import DistributeTranspilerConfig

__getattr__ = _missing_name("paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler", globals())
