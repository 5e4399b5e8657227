"""``fluid.optimizer``: the optimizers with the argument lists of 1.x, with and without the suffix."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.optimizers.averages import ExponentialMovingAverage, ModelAverage
from fleet_mpi.program.optimizers.base import Optimizer
from fleet_mpi.program.optimizers.compressed import DGCMomentumOptimizer
from fleet_mpi.program.optimizers.plain import (SGD, Adadelta, AdadeltaOptimizer, Adagrad, AdagradOptimizer, Adam,
                                                Adamax, AdamaxOptimizer, AdamOptimizer, AdamW, AdamWOptimizer,
                                                DecayedAdagrad, DecayedAdagradOptimizer, Ftrl, FtrlOptimizer, Lamb,
                                                LambOptimizer, LarsMomentum, LarsMomentumOptimizer, Momentum,
                                                MomentumOptimizer, RMSProp, RMSPropOptimizer, SGDOptimizer)
from fleet_mpi.program.optimizers.plain import Dpsgd, DpsgdOptimizer
from fleet_mpi.program.optimizers.wrappers import GradientMergeOptimizer, LookaheadOptimizer, RecomputeOptimizer

__getattr__ = _missing_name("paddle.fluid.optimizer", globals(), refused={
    "PipelineOptimizer": "pipelines over devices are not built; train data-parallel"})
