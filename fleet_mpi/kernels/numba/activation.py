"""Compiled versions of kernels/reference/activation.py."""

import math

from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.numba.elementary import exp_of_negative


@compiled
def relu_backward(out, dout, dx):
    """One pass."""
    y, dy, target = out.reshape(-1), dout.reshape(-1), dx.reshape(-1)
    zero = target.dtype.type(0)
    for i in range(target.size):
        target[i] = dy[i] if y[i] > zero else zero


@compiled
def relu_backward_in_place(out, grad):
    """One pass over two arrays."""
    y, target = out.reshape(-1), grad.reshape(-1)
    zero = target.dtype.type(0)
    for i in range(target.size):
        target[i] = target[i] if y[i] > zero else zero


@compiled
def _logistic(x):
    power = exp_of_negative(-abs(x))
    one = type(power)(1)
    return (one if x >= 0 else power) / (one + power)


@compiled
def sigmoid(x, out):
    """One pass."""
    given, made = x.reshape(-1), out.reshape(-1)
    for i in range(made.size):
        made[i] = _logistic(given[i])


@compiled
def sigmoid_in_place(values):
    """One pass over one array."""
    line = values.reshape(-1)
    for i in range(line.size):
        line[i] = _logistic(line[i])


@compiled
def erf(x, out):
    """The C library's, number by number."""
    given, made = x.reshape(-1), out.reshape(-1)
    for i in range(made.size):
        made[i] = math.erf(given[i])
