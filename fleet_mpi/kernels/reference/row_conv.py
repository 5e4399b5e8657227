"""Lookahead convolution: each row plus a few rows behind it in the same sequence, each times weights of its own.

``offsets`` (int64 [n + 1]) says that sequence i is the rows from offsets[i] up to offsets[i + 1]; rows lie in
contiguous matrices [rows, width], weights are [context, width]. Outputs are written fully.
"""

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels import kernel
from fleet_mpi.kernels.reference.sequence import sequence_of_rows


def rows_left(offsets, rows):
    """For each row how many there are from it up to the end of its sequence."""
    xp = module_of(offsets)
    numbers = xp.arange(rows, dtype=offsets.dtype)
    return offsets[sequence_of_rows(offsets, rows) + 1] - numbers


@kernel
def look_ahead(x, offsets, weights, out):
    """out[i] = the sum over k of x[i + k] * weights[k], as far as row i + k is in row i's sequence."""
    xp = module_of(x)
    rows = x.shape[0]
    left = rows_left(offsets, rows)
    out.fill(0)
    for k in range(min(weights.shape[0], rows)):
        inside = (left > k)[:rows - k, None]
        out[:rows - k] += xp.where(inside, x[k:] * weights[k], 0)


@kernel
def look_ahead_data_grad(dout, offsets, weights, dx):
    """dx[i] = the sum over k of dout[i - k] * weights[k], as far as row i - k is in row i's sequence."""
    xp = module_of(dout)
    rows = dout.shape[0]
    left = rows_left(offsets, rows)
    dx.fill(0)
    for k in reversed(range(min(weights.shape[0], rows))):  # rows are added in order, as the compiled version does
        inside = (left > k)[:rows - k, None]
        dx[k:] += xp.where(inside, dout[:rows - k] * weights[k], 0)


@kernel
def look_ahead_weight_grad(x, dout, offsets, dweights):
    """dweights[k] = the sum over rows i of x[i + k] * dout[i], where both are in one sequence."""
    xp = module_of(x)
    rows = x.shape[0]
    left = rows_left(offsets, rows)
    dweights.fill(0)
    for k in range(min(dweights.shape[0], rows)):
        inside = (left > k)[:rows - k, None]
        dweights[k] = xp.sum(xp.where(inside, x[k:] * dout[:rows - k], 0), axis=0)
