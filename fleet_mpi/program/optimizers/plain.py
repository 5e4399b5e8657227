"""The optimizers that are nothing but their update rule; arguments in the order of 1.x.

Each is also known with the suffix ``Optimizer``. The formulas are in ``update_rules``.
"""

from fleet_mpi.kernels.reference.random import key_of
from fleet_mpi.program.build.clip import ClipGradByNorm
from fleet_mpi.program.build.regularizers import L2Decay
from fleet_mpi.program.optimizers.base import Optimizer


class SGD(Optimizer):
    """p -= lr g."""

    type = "sgd"

    def __init__(self, learning_rate, parameter_list=None, regularization=None, grad_clip=None, name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)


class Momentum(Optimizer):
    """A step along the decayed sum of gradients; with Nesterov, ahead of it.

    ``fold_decay`` (the 2.x form) lets the update op itself do L2 decay, instead of a scale and a sum op:
    the same bits, two passes over memory less.
    """

    type = "momentum"
    fold_decay = False

    def __init__(self, learning_rate, momentum, parameter_list=None, use_nesterov=False, regularization=None,
                 grad_clip=None, name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name,
                         mu=momentum, use_nesterov=use_nesterov)

    def _regularize(self, pairs, source_of):
        if not self.fold_decay:
            return super()._regularize(pairs, source_of)
        apart = {param.name: (param, grad) for param, grad in pairs if not self._decay_of(param)}
        done = dict((param.name, (param, grad)) for param, grad in super()._regularize(apart.values(), source_of))
        return [done.get(param.name, (param, grad)) for param, grad in pairs]

    def _decay_of(self, param):
        """The coefficient that the update op applies; 0 where none or another regularizer is asked for."""
        chosen = param.regularizer or self.regularization
        return chosen.regularization_coeff if self.fold_decay and isinstance(chosen, L2Decay) else 0.0

    def op_attrs(self, param):
        """With the folded decay, under the original's two names."""
        coeff = self._decay_of(param)
        folded = {"regularization_method": "l2_decay", "regularization_coeff": coeff} if coeff else {}
        return {**super().op_attrs(param), **folded}


class LarsMomentum(Optimizer):
    """Momentum with a rate per layer, in the ratio of the norms of parameter and gradient.

    Parameters whose name contains one of ``exclude_from_weight_decay`` are not decayed.
    """

    type = "lars_momentum"

    def __init__(self, learning_rate, momentum, lars_coeff=0.001, lars_weight_decay=0.0005, parameter_list=None,
                 regularization=None, grad_clip=None, name=None, exclude_from_weight_decay=None, epsilon=0):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name, mu=momentum,
                         lars_coeff=lars_coeff, lars_weight_decay=lars_weight_decay, epsilon=epsilon)
        self._excluded = list(exclude_from_weight_decay or ())

    def op_attrs(self, param):
        """Without decay for excluded names."""
        excluded = any(part in param.name for part in self._excluded)
        return {**super().op_attrs(param), **({"lars_weight_decay": 0.0} if excluded else {})}


class Dpsgd(Optimizer):
    """SGD with gradients clipped to the norm ``clip`` and a normal number of deviation ``sigma / batch_size`` added.

    The number depends on the program's seed, the parameter's name and the step.
    """

    type = "dpsgd"

    def __init__(self, learning_rate=0.001, clip=0.9, batch_size=0.999, sigma=1e-8, parameter_list=None):
        super().__init__(learning_rate, parameter_list, batch_size=batch_size, sigma=sigma)
        self._norm = ClipGradByNorm(clip, need_clip=lambda param: True)

    def _regularize(self, pairs, source_of):
        """As part of the update, the norm is bounded last: after clips of ``set_gradient_clip`` and decay."""
        return self._norm(super()._regularize(pairs, source_of))

    def op_attrs(self, param):
        """With a seed of the parameter's own."""
        seed = key_of(param.block.program.random_seed, param.name) % 2 ** 31
        return {**super().op_attrs(param), "seed": seed}


class Adagrad(Optimizer):
    """Each element's rate falls with the sum of its squared gradients."""

    type = "adagrad"

    def __init__(self, learning_rate, epsilon=1e-6, parameter_list=None, regularization=None, grad_clip=None,
                 name=None, initial_accumulator_value=0.0):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name,
                         epsilon=epsilon, initial_accumulator_value=initial_accumulator_value)


class DecayedAdagrad(Optimizer):
    """Adagrad that forgets old gradients."""

    type = "decayed_adagrad"

    def __init__(self, learning_rate, decay=0.95, epsilon=1e-6, parameter_list=None, regularization=None,
                 grad_clip=None, name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name,
                         decay=decay, epsilon=epsilon)


class Adam(Optimizer):
    """Steps by the ratio of decayed mean and root mean square; ``lazy_mode`` leaves unmentioned rows alone."""

    type = "adam"
    powers_apart = True

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameter_list=None,
                 regularization=None, grad_clip=None, name=None, lazy_mode=False):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name,
                         beta1=beta1, beta2=beta2, epsilon=epsilon, lazy_mode=lazy_mode)


class AdamW(Optimizer):
    """Adam that shrinks the parameter itself, apart from the gradient.

    ``apply_decay_param_fun(name)`` tells which parameters decay; all by default.
    """

    type = "adamw"

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01,
                 apply_decay_param_fun=None, parameter_list=None, grad_clip=None, name=None, lazy_mode=False):
        super().__init__(learning_rate, parameter_list, None, grad_clip, name,
                         beta1=beta1, beta2=beta2, epsilon=epsilon, coeff=float(weight_decay), lazy_mode=lazy_mode)
        self._decays = apply_decay_param_fun or (lambda name: True)

    def op_attrs(self, param):
        """Without decay for parameters that are excused."""
        return {**super().op_attrs(param), **({} if self._decays(param.name) else {"coeff": 0.0})}


class Adamax(Optimizer):
    """Adam with the decayed maximum of |g| in place of the root mean square."""

    type = "adamax"
    powers_apart = True

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameter_list=None,
                 regularization=None, grad_clip=None, name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name,
                         beta1=beta1, beta2=beta2, epsilon=epsilon)


class Adadelta(Optimizer):
    """Steps as large as recent steps were; the learning rate is taken and, as in the original, not used."""

    type = "adadelta"

    def __init__(self, learning_rate, epsilon=1.0e-6, rho=0.95, parameter_list=None, regularization=None,
                 grad_clip=None, name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name, epsilon=epsilon, rho=rho)


class RMSProp(Optimizer):
    """Gradients divided by their decayed root mean square, with momentum; ``centered`` by their deviation."""

    type = "rmsprop"

    def __init__(self, learning_rate, rho=0.95, epsilon=1.0e-6, momentum=0.0, centered=False, parameter_list=None,
                 regularization=None, grad_clip=None, name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name,
                         rho=rho, epsilon=epsilon, momentum=momentum, centered=centered)


class Ftrl(Optimizer):
    """Follow the regularised leader: sparse linear models."""

    type = "ftrl"

    def __init__(self, learning_rate, l1=0.0, l2=0.0, lr_power=-0.5, parameter_list=None, regularization=None,
                 grad_clip=None, name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name,
                         l1=l1, l2=l2, lr_power=lr_power)


class Lamb(Optimizer):
    """Adam's direction scaled to each parameter's norm.

    ``exclude_from_weight_decay_fn(param)`` tells which parameters do not decay.
    """

    type = "lamb"
    powers_apart = True

    def __init__(self, learning_rate=0.001, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-6,
                 parameter_list=None, regularization=None, grad_clip=None, exclude_from_weight_decay_fn=None,
                 name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name, beta1=beta1, beta2=beta2,
                         epsilon=epsilon, weight_decay=lamb_weight_decay)
        self._excludes = exclude_from_weight_decay_fn or (lambda param: False)

    def op_attrs(self, param):
        """Without decay for excluded parameters."""
        return {**super().op_attrs(param), **({"weight_decay": 0.0} if self._excludes(param) else {})}


SGDOptimizer, MomentumOptimizer, LarsMomentumOptimizer, DpsgdOptimizer = SGD, Momentum, LarsMomentum, Dpsgd
AdagradOptimizer, DecayedAdagradOptimizer, AdadeltaOptimizer = Adagrad, DecayedAdagrad, Adadelta
AdamOptimizer, AdamWOptimizer, AdamaxOptimizer = Adam, AdamW, Adamax
RMSPropOptimizer, FtrlOptimizer, LambOptimizer = RMSProp, Ftrl, Lamb
