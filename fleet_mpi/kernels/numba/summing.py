"""Sums for host arrays: one pass, one call (numpy's own sum costs 3 us before it begins)."""

from fleet_mpi.kernels.numba.compiling import compiled


@compiled
def _total(x):
    # Eight sums side by side keep the adders busy; their number is part of the result's bits.
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    whole = x.size - x.size % 8
    for i in range(0, whole, 8):
        a0 += x[i]
        a1 += x[i + 1]
        a2 += x[i + 2]
        a3 += x[i + 3]
        a4 += x[i + 4]
        a5 += x[i + 5]
        a6 += x[i + 6]
        a7 += x[i + 7]
    total = ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))
    for i in range(whole, x.size):
        total += x[i]
    return total


@compiled
def mean_of_all(x, out):
    """See kernels/reference/summing.py; summed in float64."""
    out[0] = _total(x) / x.size


@compiled
def spread(value, out):
    """See kernels/reference/summing.py."""
    share = out.dtype.type(value[0] / out.size)
    for i in range(out.size):
        out[i] = share


@compiled
def sum_of_rows(x, out):
    """See kernels/reference/summing.py; row after row, so that columns are summed side by side."""
    rows, columns = x.shape
    for j in range(columns):
        out[j] = 0
    for i in range(rows):
        for j in range(columns):
            out[j] += x[i, j]


@compiled
def sum_of_channels(x, out):
    """See kernels/reference/summing.py; each image and channel in float64, then image after image."""
    for j in range(x.shape[1]):
        total = 0.0
        for i in range(x.shape[0]):
            total += _total(x[i, j])
        out[j] = total
