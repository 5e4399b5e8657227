"""Weight decay apart from the gradient, for any optimizer of 1.x: before each update ``param -= coeff * param``."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph import program as programs
from fleet_mpi.program.graph.unique_name import name_scope
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers.math import elementwise_sub
from fleet_mpi.program.layers.tensor import assign
from fleet_mpi.program.optimizers.base import Optimizer


class DecoupledWeightDecay:
    """What such an optimizer does before the updates of the optimizer that it extends."""

    def __init__(self, coeff=0.0, apply_decay_param_fun=None, **kwargs):
        if not isinstance(coeff, (int, float, Variable)):
            raise UsageError(f"{type(self).__name__}: weight_decay must be a number or a variable, got {coeff!r}")
        self._coeff, self._apply_decay_param_fun = coeff, apply_decay_param_fun
        super().__init__(**kwargs)

    def apply_gradients(self, params_grads):
        """Decay the parameters that have a gradient, then update."""
        if isinstance(self._coeff, Variable) or self._coeff:
            self._decay([pair for pair in params_grads if self._decays(*pair)])
        return super().apply_gradients(params_grads)

    def _decays(self, param, grad):
        chosen = self._apply_decay_param_fun
        return grad is not None and (chosen is None or chosen(param.name))

    def _decay(self, pairs):
        """As the original's ops stand: the parts to take off first, then they are taken off."""
        program, parts = programs.default_main_program(), []
        for param, grad in pairs:
            with program._optimized_guard([param, grad]), name_scope("weight decay"):
                parts.append(param * self._coeff)
        for (param, grad), part in zip(pairs, parts):
            with program._optimized_guard([param, grad]), name_scope("weight decay"):
                assign(elementwise_sub(param, part), param)


def extend_with_decoupled_weight_decay(base_optimizer):
    """A class like ``base_optimizer``, with ``weight_decay`` and ``apply_decay_param_fun`` before its keywords."""
    if not (isinstance(base_optimizer, type) and issubclass(base_optimizer, Optimizer)):
        raise UsageError(f"extend_with_decoupled_weight_decay: expected a class of fluid.optimizer, got "
                         f"{base_optimizer!r}")

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecay, base_optimizer):
        """The optimizer, with weight decay apart from the gradient."""

        def __init__(self, weight_decay, apply_decay_param_fun=None, **kwargs):
            super().__init__(weight_decay, apply_decay_param_fun, **kwargs)

    return OptimizerWithDecoupledWeightDecay
