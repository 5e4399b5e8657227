"""``paddle.distributed.fleet.meta_optimizers``: optimizers that wrap others, as some scripts import them."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.optimizer import FP16AllReduceOptimizer
from fleet_mpi.paddle.distributed.fleet.meta_optimizers import sharding

__getattr__ = _missing_name("paddle.distributed.fleet.meta_optimizers", globals(), {
    "DGCMomentumOptimizer": "fleet_mpi.program.optimizers.compressed:DGCMomentumOptimizer",
    "meta_optimizer_base": "fleet_mpi.paddle.distributed.fleet.meta_optimizers.meta_optimizer_base"}, dict.fromkeys(
        ("AMPOptimizer", "RecomputeOptimizer", "DGCOptimizer", "GradientMergeOptimizer", "GraphExecutionOptimizer",
         "LambOptimizer", "LarsOptimizer", "LocalSGDOptimizer", "AdaptiveLocalSGDOptimizer", "PipelineOptimizer",
         "ParameterServerOptimizer", "ShardingOptimizer"),
        "a strategy is applied by fleet.distributed_optimizer(optimizer, strategy), not by the classes inside it"))
