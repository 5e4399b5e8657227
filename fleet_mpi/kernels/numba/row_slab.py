"""Rows of a slab for host arrays: one pass over the rows, which are asked for from memory some rows ahead.

Same names, arguments and bits as ``row_slab.py``; the formula of an element is that of ``update``. Rows are indexed in
the slab, never viewed (see there), and gone over in steps of 8 columns: a loop as long as a row is too short for the
compiler's wide loop (16 wide: 93 against 40 ns for Adagrad, 28 against 9 for a copy).
"""

import numpy as np

from fleet_mpi.kernels.numba import update
from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.numba.prefetching import AHEAD, prefetch_row
from fleet_mpi.kernels.reference.update import FTRL_SHIFT

STEP = 8


@compiled
def gather(slab, slots, out):
    """Rows ahead are asked for."""
    width = out.shape[1]
    whole = width - width % STEP
    for i in range(slots.size):
        if i + AHEAD < slots.size:
            prefetch_row(slab, slots[i + AHEAD], width)
        if slots[i] >= 0:
            row = np.uint64(slots[i])
            for begin in range(0, whole, STEP):
                for j in range(STEP):
                    out[i, begin + j] = slab[row, begin + j]
            for j in range(whole, width):
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
    for i in range(slots.size):
        if i + AHEAD < slots.size:
            prefetch_row(slab, slots[i + AHEAD], width)
        _sgd_row(slab, np.uint64(slots[i]), grad, i, rate)


@compiled
def _sgd_row(slab, row, grad, i, rate):
    width = grad.shape[1]
    whole = width - width % STEP
    for begin in range(0, whole, STEP):
        for j in range(STEP):
            _sgd_at(slab, row, grad, i, begin + j, rate)
    for j in range(whole, width):
        _sgd_at(slab, row, grad, i, j, rate)


@compiled
def _sgd_at(slab, row, grad, i, j, rate):
    slab[row, j] -= rate * grad[i, j]


@compiled
def momentum(slab, slots, grad, rate, mu, nesterov, rescale):
    """The rows ``slots``, then all others."""
    kind = slab.dtype.type
    rate, mu, rescale = kind(rate[0]), kind(mu), kind(rescale)
    for i in range(slots.size):
        _momentum_row(slab, np.uint64(slots[i]), grad, i, rate, mu, nesterov, rescale)
    mentioned, zeros = update._mentioned(slots, slab.shape[0]), np.zeros((1, grad.shape[1]), slab.dtype)
    for row in range(slab.shape[0]):
        if not mentioned[row]:
            _momentum_row(slab, np.uint64(row), zeros, 0, rate, mu, nesterov, rescale)


@compiled
def _momentum_row(slab, row, grad, i, rate, mu, nesterov, rescale):
    width = grad.shape[1]
    whole = width - width % STEP
    for begin in range(0, whole, STEP):
        for j in range(STEP):
            _momentum_at(slab, row, grad, i, begin + j, rate, mu, nesterov, rescale)
    for j in range(whole, width):
        _momentum_at(slab, row, grad, i, j, rate, mu, nesterov, rescale)


@compiled
def _momentum_at(slab, row, grad, i, j, rate, mu, nesterov, rescale):
    velocity = grad.shape[1] + j
    slab[row, j], slab[row, velocity] = update._momentum(
        slab[row, j], grad[i, j], slab[row, velocity], rate, mu, nesterov, type(rate)(0), rescale)


@compiled
def adagrad(slab, slots, grad, rate, epsilon):
    """Row by row."""
    kind = slab.dtype.type
    rate, epsilon = kind(rate[0]), kind(epsilon)
    width = grad.shape[1]
    for i in range(slots.size):
        if i + AHEAD < slots.size:
            prefetch_row(slab, slots[i + AHEAD], 2 * width)
        _adagrad_row(slab, np.uint64(slots[i]), grad, i, rate, epsilon)


@compiled
def _adagrad_row(slab, row, grad, i, rate, epsilon):
    width = grad.shape[1]
    whole = width - width % STEP
    for begin in range(0, whole, STEP):
        for j in range(STEP):
            _adagrad_at(slab, row, grad, i, begin + j, rate, epsilon)
    for j in range(whole, width):
        _adagrad_at(slab, row, grad, i, j, rate, epsilon)


@compiled
def _adagrad_at(slab, row, grad, i, j, rate, epsilon):
    moment = grad.shape[1] + j
    slab[row, j], slab[row, moment] = update._adagrad(slab[row, j], grad[i, j], slab[row, moment], rate, epsilon)


@compiled
def adagrad_rowwise(slab, slots, grad, rate, epsilon):
    """Row by row; squares are added in float64 from left to right."""
    kind = slab.dtype.type
    rate, epsilon = kind(rate[0]), kind(epsilon)
    width = grad.shape[1]
    for i in range(slots.size):
        if i + AHEAD < slots.size:
            prefetch_row(slab, slots[i + AHEAD], width + 1)
        row, total = np.uint64(slots[i]), 0.0
        for j in range(width):
            total += np.float64(grad[i, j]) * np.float64(grad[i, j])
        moment = slab[row, width] + kind(total / width)
        slab[row, width] = moment
        _rowwise_row(slab, row, grad, i, rate, np.sqrt(moment) + epsilon)


@compiled
def _rowwise_row(slab, row, grad, i, rate, root):
    width = grad.shape[1]
    whole = width - width % STEP
    for begin in range(0, whole, STEP):
        for j in range(STEP):
            _rowwise_at(slab, row, grad, i, begin + j, rate, root)
    for j in range(whole, width):
        _rowwise_at(slab, row, grad, i, j, rate, root)


@compiled
def _rowwise_at(slab, row, grad, i, j, rate, root):
    slab[row, j] -= rate * grad[i, j] / root


@compiled
def adam(slab, slots, grad, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff, lazy):
    """The rows ``slots``; where not lazy, then all others."""
    kind = slab.dtype.type
    step, small, keep = update._adam_scales(kind(beta1_pow[0]), kind(beta2_pow[0]), kind(rate[0]), kind(epsilon),
                                            kind(coeff))
    b1, b2 = kind(beta1), kind(beta2)
    width = grad.shape[1]
    for i in range(slots.size):
        if i + AHEAD < slots.size:
            prefetch_row(slab, slots[i + AHEAD], 3 * width)
        _adam_row(slab, np.uint64(slots[i]), grad, i, step, small, keep, b1, b2)
    if not lazy:
        mentioned, zeros = update._mentioned(slots, slab.shape[0]), np.zeros((1, width), slab.dtype)
        for row in range(slab.shape[0]):
            if not mentioned[row]:
                _adam_row(slab, np.uint64(row), zeros, 0, step, small, keep, b1, b2)
    beta1_pow[0] *= beta1_pow.dtype.type(beta1)
    beta2_pow[0] *= beta2_pow.dtype.type(beta2)


@compiled
def _adam_row(slab, row, grad, i, step, small, keep, b1, b2):
    width = grad.shape[1]
    whole = width - width % STEP
    for begin in range(0, whole, STEP):
        for j in range(STEP):
            _adam_at(slab, row, grad, i, begin + j, step, small, keep, b1, b2)
    for j in range(whole, width):
        _adam_at(slab, row, grad, i, j, step, small, keep, b1, b2)


@compiled
def _adam_at(slab, row, grad, i, j, step, small, keep, b1, b2):
    first = grad.shape[1] + j
    second = grad.shape[1] + first
    slab[row, j], slab[row, first], slab[row, second] = update._adam(
        slab[row, j], grad[i, j], slab[row, first], slab[row, second], step, small, keep, b1, b2)


@compiled
def ftrl(slab, slots, grad, rate, l1, l2, lr_power):
    """Row by row; square roots for the usual power of -1/2."""
    kind = slab.dtype.type
    rate, power = kind(rate[0]), kind(-lr_power)
    l1, twice_l2 = kind(l1) + kind(FTRL_SHIFT), kind(2) * (kind(l2) + kind(FTRL_SHIFT))
    by_root = lr_power == -0.5
    for i in range(slots.size):
        if i + AHEAD < slots.size:
            prefetch_row(slab, slots[i + AHEAD], 3 * grad.shape[1])
        if by_root:
            _ftrl_by_root_row(slab, np.uint64(slots[i]), grad, i, rate, l1, twice_l2)
        else:
            _ftrl_by_power_row(slab, np.uint64(slots[i]), grad, i, rate, l1, twice_l2, power)


@compiled
def _ftrl_by_root_row(slab, row, grad, i, rate, l1, twice_l2):
    width = grad.shape[1]
    whole = width - width % STEP
    for begin in range(0, whole, STEP):
        for j in range(STEP):
            _ftrl_by_root_at(slab, row, grad, i, begin + j, rate, l1, twice_l2)
    for j in range(whole, width):
        _ftrl_by_root_at(slab, row, grad, i, j, rate, l1, twice_l2)


@compiled
def _ftrl_by_root_at(slab, row, grad, i, j, rate, l1, twice_l2):
    squared = grad.shape[1] + j
    linear = grad.shape[1] + squared
    slab[row, j], slab[row, squared], slab[row, linear] = update._ftrl_by_root(
        slab[row, j], grad[i, j], slab[row, squared], slab[row, linear], rate, l1, twice_l2)


@compiled
def _ftrl_by_power_row(slab, row, grad, i, rate, l1, twice_l2, power):
    width = grad.shape[1]
    whole = width - width % STEP
    for begin in range(0, whole, STEP):
        for j in range(STEP):
            _ftrl_by_power_at(slab, row, grad, i, begin + j, rate, l1, twice_l2, power)
    for j in range(whole, width):
        _ftrl_by_power_at(slab, row, grad, i, j, rate, l1, twice_l2, power)


@compiled
def _ftrl_by_power_at(slab, row, grad, i, j, rate, l1, twice_l2, power):
    squared = grad.shape[1] + j
    linear = grad.shape[1] + squared
    slab[row, j], slab[row, squared], slab[row, linear] = update._ftrl_by_power(
        slab[row, j], grad[i, j], slab[row, squared], slab[row, linear], rate, l1, twice_l2, power)
