"""Sums: of everything, and of rows. One order of summation, whatever the number of threads."""

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels import kernel


@kernel
def mean_of_all(x, out):
    """out[0] = mean of a flat array."""
    xp = module_of(x)
    xp.divide(xp.sum(x), float(x.size), out=out)


@kernel
def spread(value, out):
    """Every element of a flat array gets value[0] / its size: the gradient of a mean."""
    module_of(value).divide(value, float(out.size), out=out)


@kernel
def sum_of_rows(x, out):
    """out[j] = sum over i of x[i, j]: the gradient of a bias."""
    module_of(x).sum(x, axis=0, out=out)


@kernel
def sum_of_channels(x, out):
    """out[j] = sum over i, k of x[i, j, k]: the gradient of a convolution's bias."""
    module_of(x).sum(x, axis=(0, 2), out=out)
