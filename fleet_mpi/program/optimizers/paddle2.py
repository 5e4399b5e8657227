"""The optimizers with the argument lists of 2.x (``paddle.optimizer``).

``weight_decay`` is a regularizer, or a number that stands for L2. ``multi_precision`` is taken and without
effect: float32 is the precision on a CPU.
"""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.regularizers import L2Decay, Regularizer
from fleet_mpi.program.optimizers import base, plain


def as_regularizer(weight_decay):
    """A regularizer from what 2.x takes for one."""
    if weight_decay is None or isinstance(weight_decay, Regularizer):
        return weight_decay
    if isinstance(weight_decay, (int, float)) and not isinstance(weight_decay, bool):
        return L2Decay(weight_decay)
    raise UsageError(f"weight_decay: expected a number or a regularizer, got {type(weight_decay).__name__}")


class Optimizer(base.Optimizer):
    """The base, with the 2.x names."""

    def __init__(self, learning_rate, parameters=None, weight_decay=None, grad_clip=None, name=None):
        super().__init__(learning_rate, parameters, as_regularizer(weight_decay), grad_clip, name)


class SGD(plain.SGD):
    """See plain.SGD."""

    def __init__(self, learning_rate=0.001, parameters=None, weight_decay=None, grad_clip=None, name=None):
        super().__init__(learning_rate, parameters, as_regularizer(weight_decay), grad_clip, name)


class Momentum(plain.Momentum):
    """See plain.Momentum; L2 decay is part of the update op."""

    fold_decay = True

    def __init__(self, learning_rate=0.001, momentum=0.9, parameters=None, use_nesterov=False, weight_decay=None,
                 grad_clip=None, multi_precision=False, rescale_grad=1.0, name=None):
        super().__init__(learning_rate, momentum, parameters, use_nesterov, as_regularizer(weight_decay), grad_clip,
                         name)
        self.hypers["rescale_grad"] = float(rescale_grad)


class Adagrad(plain.Adagrad):
    """See plain.Adagrad."""

    def __init__(self, learning_rate, epsilon=1e-6, parameters=None, weight_decay=None, grad_clip=None, name=None,
                 initial_accumulator_value=0.0):
        super().__init__(learning_rate, epsilon, parameters, as_regularizer(weight_decay), grad_clip, name,
                         initial_accumulator_value)


class Adam(plain.Adam):
    """See plain.Adam; the update op moves the beta powers on itself."""

    powers_apart = False

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None,
                 weight_decay=None, grad_clip=None, lazy_mode=False, multi_precision=False, name=None):
        super().__init__(learning_rate, beta1, beta2, epsilon, parameters, as_regularizer(weight_decay), grad_clip,
                         name, lazy_mode)


class AdamW(plain.AdamW):
    """See plain.AdamW; ``lr_ratio`` belongs to eager mode and is refused."""

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None, weight_decay=0.01,
                 lr_ratio=None, apply_decay_param_fun=None, grad_clip=None, lazy_mode=False, multi_precision=False,
                 name=None):
        if lr_ratio is not None:
            raise UsageError("AdamW: lr_ratio is not taken; give a parameter its own rate with "
                             "ParamAttr(learning_rate=...)")
        super().__init__(learning_rate, beta1, beta2, epsilon, weight_decay, apply_decay_param_fun, parameters,
                         grad_clip, name, lazy_mode)


class Adamax(plain.Adamax):
    """See plain.Adamax; the update op moves the beta power on itself."""

    powers_apart = False

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None,
                 weight_decay=None, grad_clip=None, name=None):
        super().__init__(learning_rate, beta1, beta2, epsilon, parameters, as_regularizer(weight_decay), grad_clip,
                         name)


class Adadelta(plain.Adadelta):
    """See plain.Adadelta."""

    def __init__(self, learning_rate=0.001, epsilon=1.0e-6, rho=0.95, parameters=None, weight_decay=None,
                 grad_clip=None, name=None):
        super().__init__(learning_rate, epsilon, rho, parameters, as_regularizer(weight_decay), grad_clip, name)


class RMSProp(plain.RMSProp):
    """See plain.RMSProp."""

    def __init__(self, learning_rate, rho=0.95, epsilon=1.0e-6, momentum=0.0, centered=False, parameters=None,
                 weight_decay=None, grad_clip=None, name=None):
        super().__init__(learning_rate, rho, epsilon, momentum, centered, parameters, as_regularizer(weight_decay),
                         grad_clip, name)


class Lamb(plain.Lamb):
    """See plain.Lamb; the update op moves the beta powers on itself."""

    powers_apart = False

    def __init__(self, learning_rate=0.001, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-6,
                 parameters=None, grad_clip=None, exclude_from_weight_decay_fn=None, multi_precision=False,
                 name=None):
        super().__init__(learning_rate, lamb_weight_decay, beta1, beta2, epsilon, parameters, None, grad_clip,
                         exclude_from_weight_decay_fn, name)
