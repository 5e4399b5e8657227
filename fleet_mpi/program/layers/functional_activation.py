"""Activations under their 2.x names and signatures (``paddle.nn.functional``)."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.layers import activation, images, manipulation
from fleet_mpi.program.layers.math import elementwise_mul
from fleet_mpi.program.layers.single_op import single_op


def leaky_relu(x, negative_slope=0.01, name=None):
    """x, or ``negative_slope`` times x below 0."""
    return activation.leaky_relu(x, negative_slope, name)


def hardsigmoid(x, slope=0.1666667, offset=0.5, name=None):
    """slope x + offset, held between 0 and 1."""
    return activation.hard_sigmoid(x, slope, offset, name)


def hardswish(x, name=None):
    """x times relu6(x + 3) / 6."""
    return activation.hard_swish(x, name=name)


def swish(x, name=None):
    """x / (1 + e^-x)."""
    return activation.swish(x, name=name)


def softplus(x, beta=1, threshold=20, name=None):
    """log(1 + e^(beta x)) / beta; x itself where beta x is above the threshold."""
    return activation.apply("softplus", x, name, {"beta": float(beta), "threshold": float(threshold)})


def log_sigmoid(x, name=None):
    """log(1 / (1 + e^-x))."""
    return activation.logsigmoid(x, name)


def relu6(x, name=None):
    """x held between 0 and 6."""
    return activation.relu6(x, name=name)


def hardtanh(x, min=-1.0, max=1.0, name=None):
    """x held between two numbers."""
    return activation.brelu(x, float(min), float(max), name)


def hardshrink(x, threshold=0.5, name=None):
    """x, but 0 where |x| is at most the threshold."""
    return activation.apply("hard_shrink", x, name, {"threshold": float(threshold)})


def softshrink(x, threshold=0.5, name=None):
    """x brought nearer to 0 by the threshold, 0 where it would pass it."""
    return activation.apply("softshrink", x, name, {"lambda": float(threshold)})


def tanhshrink(x, name=None):
    """x - tanh(x)."""
    return activation.tanh_shrink(x, name)


def thresholded_relu(x, threshold=1.0, name=None):
    """x, but 0 where it is at most the threshold."""
    return activation.apply("thresholded_relu", x, name, {"threshold": float(threshold)})


def mish(x, name=None):
    """x tanh(log(1 + e^x))."""
    return activation.mish(x, name=name)


def maxout(x, groups, axis=1, name=None):
    """The largest of each ``groups`` neighbouring channels."""
    return images.maxout(x, groups, name, axis)


def glu(x, axis=-1, name=None):
    """The first half along an axis times the sigmoid of the second."""
    first, second = manipulation.split(x, 2, axis)
    return elementwise_mul(first, activation.sigmoid(second), name=name)


def prelu(x, weight, data_format="NCHW", name=None):
    """x above 0, weight times x below; the weight is one number or one per channel."""
    if weight.shape not in ((1,), (x.shape[1],)):
        raise UsageError(f"prelu: expected one number, or one for each of {x.shape[1]} channels, got {weight.shape}")
    mode = "all" if weight.shape == (1,) else "channel"
    return single_op("prelu", {"X": x, "Alpha": weight}, {"mode": mode}, name=name)
