"""The strategies of the 1.x parameter-server fleet, under a path that some scripts use."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.transpiler_strategies import (AsyncStrategy, DistributedStrategy, GeoStrategy, HalfAsyncStrategy,
                                                   StrategyFactory, SyncStrategy, TrainerRuntimeConfig)

__getattr__ = _missing_name("paddle.fluid.transpiler.distribute_transpiler.distributed_strategy", globals())
