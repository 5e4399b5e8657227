"""``fluid.transpiler.distribute_transpiler``: the transpiler and its options."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.transpiler.distribute_transpiler import distributed_strategy
from fleet_mpi.transpile.distribute_transpiler import (DistributeTranspiler, DistributeTranspilerConfig,
                                                       ServerRuntimeConfig)

__getattr__ = _missing_name("paddle.fluid.transpiler.distribute_transpiler", globals(), {
    "DistributedMode": "fleet_mpi.fleet.transpiler_strategies:DistributedMode"})
