"""Batch norm where the channels lie side by side, as in [N, C] and NHWC: row after row, all channels at once.

Each channel is summed over the rows in order, in float64; so how the channels are cut into pieces
does not show in the bits.
"""

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled


@compiled
def forward(x, out, start, stop, scale, bias, mean, inv_std, running_mean, running_var, momentum, epsilon, relu):
    """Training's forward pass over channels ``start`` to ``stop`` of ``x`` [rows, channels, 1]."""
    kind = x.dtype.type
    rows, width = x.shape[0], stop - start
    total, squares = np.zeros(width), np.zeros(width)
    for i in range(rows):
        row = x[i, start:stop, 0]
        for j in range(width):
            total[j] += row[j]
    for j in range(width):
        total[j] /= rows
        mean[start + j] = kind(total[j])
    for i in range(rows):
        row = x[i, start:stop, 0]
        for j in range(width):
            squares[j] += (row[j] - total[j]) ** 2
    for j in range(width):
        c, variance = start + j, squares[j] / rows
        inv_std[c] = kind(1 / np.sqrt(variance + epsilon))
        running_mean[c] = kind(momentum * running_mean[c] + (1 - momentum) * total[j])
        running_var[c] = kind(momentum * running_var[c] + (1 - momentum) * variance)
    _apply(x, out, start, stop, scale, bias, mean, inv_std, relu)


@compiled
def inference(x, out, start, stop, scale, bias, mean, variance, inv_std, epsilon, relu):
    """The forward pass by given statistics over channels ``start`` to ``stop``."""
    for c in range(start, stop):
        inv_std[c] = x.dtype.type(1 / np.sqrt(np.float64(variance[c]) + epsilon))
    _apply(x, out, start, stop, scale, bias, mean, inv_std, relu)


@compiled
def _apply(x, out, start, stop, scale, bias, mean, inv_std, relu):
    zero = x.dtype.type(0)
    width = stop - start
    factor = inv_std[start:stop] * scale[start:stop]
    centre, offset = mean[start:stop], bias[start:stop]
    for i in range(x.shape[0]):
        row, made = x[i, start:stop, 0], out[i, start:stop, 0]
        for j in range(width):
            made[j] = (row[j] - centre[j]) * factor[j] + offset[j]
        if relu:
            for j in range(width):
                made[j] = zero if made[j] < zero else made[j]


@compiled
def backward(x, dout, out, dx, start, stop, scale, mean, inv_std, dscale, dbias, relu, frozen):
    """The gradients over channels ``start`` to ``stop``; ``out`` is read where ``relu`` is set."""
    kind = x.dtype.type
    zero = kind(0)
    rows, width = x.shape[0], stop - start
    plain, along = np.zeros(width), np.zeros(width)
    centre = mean[start:stop]
    for i in range(rows):
        row, given, made = x[i, start:stop, 0], dout[i, start:stop, 0], dx[i, start:stop, 0]
        if relu:
            result = out[i, start:stop, 0]
            for j in range(width):
                made[j] = given[j] if result[j] > zero else zero
        else:
            for j in range(width):
                made[j] = given[j]
        for j in range(width):
            plain[j] += made[j]
            along[j] += made[j] * (row[j] - centre[j])
    shift, slope, factor = np.zeros(width, x.dtype), np.zeros(width, x.dtype), np.zeros(width, x.dtype)
    for j in range(width):
        c = start + j
        dbias[c] = kind(plain[j])
        dscale[c] = kind(along[j] * inv_std[c])
        factor[j] = scale[c] * inv_std[c]
        if not frozen:
            shift[j] = kind(plain[j] / rows)
            slope[j] = kind(along[j] * inv_std[c] / rows * inv_std[c])
    for i in range(rows):
        row, made = x[i, start:stop, 0], dx[i, start:stop, 0]
        for j in range(width):
            made[j] = (made[j] - shift[j] - (row[j] - centre[j]) * slope[j]) * factor[j]
