"""DGCMomentumOptimizer: momentum that, past a ramp-up, moves only the largest of its accumulated gradients.

What one worker does by itself is here: selection, correction and the update. Sending only the
selection to other workers is the collective mode's business.
"""

import math

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.clip import ClipByNorm
from fleet_mpi.program.graph.types import VarType
from fleet_mpi.program.optimizers.base import Optimizer
from fleet_mpi.update_rules import DGC_SMALLEST, RULES


class DGCMomentumOptimizer(Optimizer):
    """Momentum until ``rampup_begin_step``, then deep gradient compression over ``rampup_step`` steps' ``sparsity``.

    Only float32 parameters of at least 16384 elements with dense gradients are compressed. Gradients may be
    clipped by norm only: ``local_grad_clip_norm`` is shared out over ``num_trainers`` by their root.
    """

    type = "dgc_momentum"

    def __init__(self, learning_rate, momentum, rampup_begin_step, rampup_step=1, sparsity=(0.999,),
                 use_nesterov=False, local_grad_clip_norm=None, num_trainers=None, regularization=None,
                 grad_clip=None, name=None, parameter_list=None):
        super().__init__(learning_rate, parameter_list, regularization, None, name, mu=momentum,
                         use_nesterov=use_nesterov, rampup_begin_step=rampup_begin_step, rampup_step=rampup_step,
                         sparsity=tuple(sparsity))
        if not sparsity or any(not 0 <= one < 1 for one in sparsity):
            raise UsageError(f"DGCMomentumOptimizer: sparsity must be numbers from 0 up, below 1, got {sparsity!r}")
        self._grad_clip = local_clip(grad_clip, local_grad_clip_norm, num_trainers)

    def _create_optimization_pass(self, parameters_and_grads, marked_as=None):
        self._row_gradients = {param.name for param, grad in parameters_and_grads
                               if grad is not None and grad.type == VarType.SELECTED_ROWS}
        return super()._create_optimization_pass(parameters_and_grads, marked_as)

    def _rule_of(self, param):
        return RULES["dgc_momentum" if self._is_compressed(param) else "momentum"]

    def _is_compressed(self, param):
        return (math.prod(param.shape) >= DGC_SMALLEST and param.dtype == "float32"
                and param.name not in self._row_gradients)


def local_clip(grad_clip, local_norm, workers):
    """The clip of one worker: a norm of n over N workers is n / sqrt(N) on each."""
    if grad_clip is not None and not isinstance(grad_clip, ClipByNorm):
        raise UsageError(f"DGCMomentumOptimizer: gradients can be clipped by norm only (GradientClipByNorm), got "
                         f"{type(grad_clip).__name__}")
    norm = local_norm if local_norm is not None else grad_clip.clip_norm if grad_clip is not None else None
    if norm is None:
        return None
    if not isinstance(workers, int) or workers < 1:
        raise UsageError(f"DGCMomentumOptimizer: clipping needs num_trainers, an integer from 1 up, got {workers!r}")
    return ClipByNorm(norm / math.sqrt(workers))
