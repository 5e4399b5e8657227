"""Rows of a slab for host arrays: one pass over the rows, which are asked for from memory some rows ahead.

Same names, arguments and bits as ``row_slab.py``; the formula of an element is that of ``update``. Rows are indexed in
the slab, never viewed (see there).
"""

import numpy as np

from fleet_mpi.kernels.numba import update
from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.numba.prefetching import AHEAD, prefetch_elements
from fleet_mpi.kernels.reference.update import FTRL_SHIFT


@compiled
def gather(slab, slots, out):
    """Rows ahead are asked for."""
    line, width = slab.reshape(-1), out.shape[1]
    for i in range(min(AHEAD, slots.size)):
        _ask(line, slots, i, slab.shape[1], width)
    for i in range(slots.size):
        if i + AHEAD < slots.size:
            _ask(line, slots, i + AHEAD, slab.shape[1], width)
        if slots[i] >= 0:
            row = np.uint64(slots[i])
            for j in range(width):
                out[i, j] = slab[row, j]


@compiled
def begin(slab, slots, values, rest):
    """New slots mostly follow one another."""
    width = values.shape[1]
    for i in range(slots.size):
        row = np.uint64(slots[i])
        for j in range(width):
            slab[row, j] = values[i, j]
        for j in range(rest.size):
            slab[row, width + j] = rest[j]


@compiled
def move(slab, moves):
    """Row by row."""
    for i in range(moves.shape[0]):
        source, target = np.uint64(moves[i, 0]), np.uint64(moves[i, 1])
        for j in range(slab.shape[1]):
            slab[target, j] = slab[source, j]


@compiled
def sgd(slab, slots, grad, rate):
    """Row by row."""
    rate = slab.dtype.type(rate[0])
    width = grad.shape[1]
    line = slab.reshape(-1)
    for i in range(slots.size):
        _ask_ahead(line, slots, i, slab.shape[1], width)
        row = np.uint64(slots[i])
        for j in range(width):
            slab[row, j] -= rate * grad[i, j]


@compiled
def momentum(slab, slots, grad, rate, mu, nesterov, rescale):
    """The rows ``slots``, then all others."""
    kind = slab.dtype.type
    rate, mu, rescale, none = kind(rate[0]), kind(mu), kind(rescale), kind(0)
    width = grad.shape[1]
    for i in range(slots.size):
        row = np.uint64(slots[i])
        for j in range(width):
            slab[row, j], slab[row, width + j] = update._momentum(
                slab[row, j], grad[i, j], slab[row, width + j], rate, mu, nesterov, none, rescale)
    mentioned = update._mentioned(slots, slab.shape[0])
    for row in range(np.uint64(slab.shape[0])):
        if not mentioned[row]:
            for j in range(width):
                slab[row, j], slab[row, width + j] = update._momentum(
                    slab[row, j], none, slab[row, width + j], rate, mu, nesterov, none, rescale)


@compiled
def adagrad(slab, slots, grad, rate, epsilon):
    """Row by row."""
    kind = slab.dtype.type
    rate, epsilon = kind(rate[0]), kind(epsilon)
    width = grad.shape[1]
    line = slab.reshape(-1)
    for i in range(slots.size):
        _ask_ahead(line, slots, i, slab.shape[1], 2 * width)
        row = np.uint64(slots[i])
        for j in range(width):
            slab[row, j], slab[row, width + j] = update._adagrad(
                slab[row, j], grad[i, j], slab[row, width + j], rate, epsilon)


@compiled
def adagrad_rowwise(slab, slots, grad, rate, epsilon):
    """Row by row; squares are added in float64 from left to right."""
    kind = slab.dtype.type
    rate, epsilon = kind(rate[0]), kind(epsilon)
    width = grad.shape[1]
    line = slab.reshape(-1)
    for i in range(slots.size):
        _ask_ahead(line, slots, i, slab.shape[1], width + 1)
        row = np.uint64(slots[i])
        total = 0.0
        for j in range(width):
            total += np.float64(grad[i, j]) * np.float64(grad[i, j])
        moment = slab[row, width] + kind(total / width)
        slab[row, width] = moment
        root = np.sqrt(moment) + epsilon
        for j in range(width):
            slab[row, j] -= rate * grad[i, j] / root


@compiled
def adam(slab, slots, grad, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff, lazy):
    """The rows ``slots``; where not lazy, then all others."""
    kind = slab.dtype.type
    step, small, keep = update._adam_scales(kind(beta1_pow[0]), kind(beta2_pow[0]), kind(rate[0]), kind(epsilon),
                                            kind(coeff))
    b1, b2, width = kind(beta1), kind(beta2), grad.shape[1]
    line = slab.reshape(-1)
    for i in range(slots.size):
        _ask_ahead(line, slots, i, slab.shape[1], 3 * width)
        row = np.uint64(slots[i])
        for j in range(width):
            slab[row, j], slab[row, width + j], slab[row, 2 * width + j] = update._adam(
                slab[row, j], grad[i, j], slab[row, width + j], slab[row, 2 * width + j], step, small, keep, b1, b2)
    if not lazy:
        _adam_without_gradient(slab, update._mentioned(slots, slab.shape[0]), width, step, small, keep, b1, b2)
    beta1_pow[0] *= beta1_pow.dtype.type(beta1)
    beta2_pow[0] *= beta2_pow.dtype.type(beta2)


@compiled
def _adam_without_gradient(slab, mentioned, width, step, small, keep, b1, b2):
    zero = slab.dtype.type(0)
    for row in range(np.uint64(slab.shape[0])):
        if not mentioned[row]:
            for j in range(width):
                slab[row, j], slab[row, width + j], slab[row, 2 * width + j] = update._adam(
                    slab[row, j], zero, slab[row, width + j], slab[row, 2 * width + j], step, small, keep, b1, b2)


@compiled
def ftrl(slab, slots, grad, rate, l1, l2, lr_power):
    """Row by row; square roots for the usual power of -1/2."""
    kind = slab.dtype.type
    rate, power = kind(rate[0]), kind(-lr_power)
    l1, twice_l2 = kind(l1) + kind(FTRL_SHIFT), kind(2) * (kind(l2) + kind(FTRL_SHIFT))
    width, by_root = grad.shape[1], lr_power == -0.5
    line = slab.reshape(-1)
    for i in range(slots.size):
        _ask_ahead(line, slots, i, slab.shape[1], 3 * width)
        row = np.uint64(slots[i])
        if by_root:
            for j in range(width):
                slab[row, j], slab[row, width + j], slab[row, 2 * width + j] = update._ftrl_by_root(
                    slab[row, j], grad[i, j], slab[row, width + j], slab[row, 2 * width + j], rate, l1, twice_l2)
        else:
            for j in range(width):
                slab[row, j], slab[row, width + j], slab[row, 2 * width + j] = update._ftrl_by_power(
                    slab[row, j], grad[i, j], slab[row, width + j], slab[row, 2 * width + j], rate, l1, twice_l2, power)


@compiled
def _ask_ahead(line, slots, i, stride, count):
    """Ask for the row that comes some rows later."""
    if i + AHEAD < slots.size:
        _ask(line, slots, i + AHEAD, stride, count)


@compiled
def _ask(line, slots, i, stride, count):
    prefetch_elements(line, np.int64(slots[i]) * stride, count)
