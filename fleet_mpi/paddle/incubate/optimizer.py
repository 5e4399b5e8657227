"""``paddle.incubate.optimizer``: optimizers that wrap others, or scale by layer."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.optimizers.averages import ExponentialMovingAverage, ModelAverage
from fleet_mpi.program.optimizers.compressed import DGCMomentumOptimizer
from fleet_mpi.program.optimizers.plain import LarsMomentumOptimizer
from fleet_mpi.program.optimizers.wrappers import GradientMergeOptimizer, RecomputeOptimizer
from fleet_mpi.program.optimizers.wrappers import LookaheadOptimizer as LookAhead

__getattr__ = _missing_name("paddle.incubate.optimizer", globals(), refused={
    "PipelineOptimizer": "pipelines over devices are not built; train data-parallel",
    "DistributedFusedLamb": "it is not built; take paddle.optimizer.Lamb",
    "LBFGS": "it needs eager mode, which is not built; take an optimizer of paddle.optimizer"})
