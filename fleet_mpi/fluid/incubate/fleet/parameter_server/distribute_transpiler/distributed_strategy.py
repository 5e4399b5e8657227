"""The strategies of the 1.x parameter-server fleet."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.transpiler_strategies import (AsyncStrategy, DistributedStrategy, GeoStrategy, HalfAsyncStrategy,
                                                   StrategyFactory, SyncStrategy, TrainerRuntimeConfig)

__getattr__ = _missing_name(
    "paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy", globals())
