"""Loops of activations that numpy has no single pass for."""

import math

import numpy as np

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels import kernel

# erf(x) = 2 x / sqrt(pi) times the integral of exp(-(x t)^2) over t from 0 to 1; by Gauss and Legendre.
# 40 points leave less than 1e-14 for |x| <= 6, beyond which erf is 1 in float64.
_POINTS, _WEIGHTS = ((0.5 * value).tolist() for value in np.polynomial.legendre.leggauss(40))
_ALL_OF_IT = 6.0


@kernel
def relu_backward(out, dout, dx):
    """dx = dout where out > 0, else 0; ``dx`` must lie apart."""
    xp = module_of(out)
    xp.copyto(dx, xp.where(out > 0, dout, xp.zeros_like(dout)))


@kernel
def relu_backward_in_place(out, grad):
    """The same, the result in the memory of the output's gradient.

    Apart, because a loop that cannot know whether its arrays overlap is not vectorised (20 times slower).
    """
    relu_backward.reference(out, grad, grad)


@kernel
def sigmoid(x, out):
    """1 / (1 + e^-x) without overflow; ``out`` must lie apart."""
    xp = module_of(x)
    power = xp.exp(-xp.absolute(x))
    xp.divide(xp.where(x >= 0, xp.ones_like(power), power), 1 + power, out=out)


@kernel
def sigmoid_in_place(values):
    """The same, the result in the memory of x."""
    sigmoid.reference(values, values)


@kernel
def erf(x, out):
    """The error function; ``out`` may be ``x``."""
    xp = module_of(x)
    held = xp.clip(x, -_ALL_OF_IT, _ALL_OF_IT)
    total = xp.zeros_like(held)
    for point, weight in zip(_POINTS, _WEIGHTS):
        total += weight * xp.exp(-xp.square(held * (point + 0.5)))
    xp.multiply(held, (2.0 / math.sqrt(math.pi)) * total, out=out)
