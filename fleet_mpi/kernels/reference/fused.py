"""Sums followed by relu, in one pass: what plans put in the place of two ops.

The versions in place are apart, because a loop that cannot know whether its arrays overlap is not vectorised.
"""

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels import kernel


@kernel
def add_relu(x, y, out):
    """out = max(x + y, 0); lines (1-D, contiguous), ``out`` apart from both."""
    xp = module_of(x)
    xp.add(x, y, out)
    xp.maximum(out, 0, out=out)


@kernel
def add_relu_in_place(x, y):
    """x = max(x + y, 0)."""
    add_relu.reference(x, y, x)


@kernel
def add_bias_relu(x, bias, out):
    """out = max(x + bias, 0) for [rows, channels] or [outer, channels, inner], a bias per channel."""
    xp = module_of(x)
    xp.add(x, _spread(bias, x), out)
    xp.maximum(out, 0, out=out)


@kernel
def add_bias_relu_in_place(x, bias):
    """x = max(x + bias, 0)."""
    add_bias_relu.reference(x, bias, x)


@kernel
def bias_relu_backward(out, dout, dx, dbias):
    """dx = dout where out > 0, else 0; dbias its sum over the rows, one after the other. All [rows, channels]."""
    xp = module_of(out)
    xp.copyto(dx, xp.where(out > 0, dout, xp.zeros_like(dout)))
    xp.sum(dx, axis=0, out=dbias)


@kernel
def bias_relu_backward_in_place(out, grad, dbias):
    """The same, the result in the memory of the output's gradient."""
    bias_relu_backward.reference(out, grad, grad, dbias)


def _spread(bias, x):
    return bias.reshape((1, -1) + (1,) * (x.ndim - 2))
