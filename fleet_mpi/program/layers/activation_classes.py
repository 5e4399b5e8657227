"""Activations as layer classes of ``paddle.nn``: each one is a function of its input and of the arguments given."""

from fleet_mpi.errors import NotBuilt
from fleet_mpi.program.build.initializers import Constant
from fleet_mpi.program.layers import activation, functional_activation, nn
from fleet_mpi.program.layers.classes import OfArguments
from fleet_mpi.program.layers.layer import Layer


class PReLU(Layer):
    """x above 0, a learned number times x below; ``num_parameters`` is 1 or the number of channels."""

    def __init__(self, num_parameters=1, init=0.25, weight_attr=None, data_format="NCHW", name=None):
        super().__init__()
        if num_parameters > 1 and not data_format.startswith("NC"):
            raise NotBuilt(f"PReLU: channels must come second (NCHW), got data_format {data_format!r}")
        self._weight = self.create_parameter([num_parameters], weight_attr, default_initializer=Constant(init))
        self._name = name

    def forward(self, x):
        """By the learned slopes."""
        return functional_activation.prelu(x, self._weight, name=self._name)


class ELU(OfArguments):
    """x above 0, alpha (e^x - 1) below."""

    function = staticmethod(activation.elu)


class SELU(OfArguments):
    """elu times a scale that keeps mean and variance."""

    function = staticmethod(activation.selu)


class Silu(OfArguments):
    """x / (1 + e^-x)."""

    function = staticmethod(activation.silu)


class Swish(OfArguments):
    """x / (1 + e^-x)."""

    function = staticmethod(functional_activation.swish)


class Mish(OfArguments):
    """x tanh(log(1 + e^x))."""

    function = staticmethod(functional_activation.mish)


class ReLU6(OfArguments):
    """x held between 0 and 6."""

    function = staticmethod(functional_activation.relu6)


class Softplus(OfArguments):
    """log(1 + e^(beta x)) / beta."""

    function = staticmethod(functional_activation.softplus)


class Softsign(OfArguments):
    """x / (1 + |x|)."""

    function = staticmethod(activation.softsign)


class Softshrink(OfArguments):
    """x brought nearer to 0 by the threshold."""

    function = staticmethod(functional_activation.softshrink)


class Hardshrink(OfArguments):
    """x, but 0 where |x| is at most the threshold."""

    function = staticmethod(functional_activation.hardshrink)


class Hardtanh(OfArguments):
    """x held between ``min`` and ``max``."""

    function = staticmethod(functional_activation.hardtanh)


class Hardsigmoid(OfArguments):
    """x / 6 + 0.5, held between 0 and 1."""

    function = staticmethod(functional_activation.hardsigmoid)


class Hardswish(OfArguments):
    """x times relu6(x + 3) / 6."""

    function = staticmethod(functional_activation.hardswish)


class Tanhshrink(OfArguments):
    """x - tanh(x)."""

    function = staticmethod(functional_activation.tanhshrink)


class ThresholdedReLU(OfArguments):
    """x, but 0 where it is at most the threshold."""

    function = staticmethod(functional_activation.thresholded_relu)


class LogSigmoid(OfArguments):
    """log(1 / (1 + e^-x))."""

    function = staticmethod(functional_activation.log_sigmoid)


class Maxout(OfArguments):
    """The largest of each ``groups`` neighbouring channels."""

    function = staticmethod(functional_activation.maxout)


class LogSoftmax(OfArguments):
    """The logarithm of softmax along ``axis``."""

    function = staticmethod(nn.log_softmax)

    def __init__(self, axis=-1, name=None):
        super().__init__(axis=axis, name=name)
