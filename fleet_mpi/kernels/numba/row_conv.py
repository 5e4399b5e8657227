"""The lookahead kernels for host arrays. Same names, arguments and results as ``row_conv.py``."""

from fleet_mpi.kernels.numba.compiling import compiled


@compiled
def look_ahead(x, offsets, weights, out):
    """Each output row stays in the cache while the rows behind it are added."""
    context = weights.shape[0]
    out[:] = 0
    for i in range(offsets.size - 1):
        end = offsets[i + 1]
        for row in range(offsets[i], end):
            for k in range(min(context, end - row)):
                _add_product(x[row + k], weights[k], out[row])


@compiled
def look_ahead_data_grad(dout, offsets, weights, dx):
    """Each row of the gradient is added to the rows that it looked at."""
    context = weights.shape[0]
    dx[:] = 0
    for i in range(offsets.size - 1):
        end = offsets[i + 1]
        for row in range(offsets[i], end):
            for k in range(min(context, end - row)):
                _add_product(dout[row], weights[k], dx[row + k])


@compiled
def look_ahead_weight_grad(x, dout, offsets, dweights):
    """The weights stay in the cache; rows are added in order."""
    context = dweights.shape[0]
    dweights[:] = 0
    for i in range(offsets.size - 1):
        end = offsets[i + 1]
        for row in range(offsets[i], end):
            for k in range(min(context, end - row)):
                _add_product(x[row + k], dout[row], dweights[k])


@compiled
def _add_product(one, other, target):
    for j in range(target.size):
        target[j] += one[j] * other[j]
