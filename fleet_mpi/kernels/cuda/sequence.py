"""Pools of ragged sequences for cupy's arrays: one thread goes through a column of a sequence, in order."""

import numpy as np

from fleet_mpi.kernels.cuda.compiling import fits, launch
from fleet_mpi.kernels.reference import sequence

# Once a NaN is the largest nothing is larger. Of equal ones, and of both zeros, the first stays.
SOURCE = r"""
extern "C" __global__ void pool_sum(const real *x, const long long *offsets, const real *divisors, real *out, real pad,
                                    long long width, long long size)
{
    FOR_MY_ELEMENTS(i, size) {
        const long long sequence = i / width, column = i % width, end = offsets[sequence + 1];
        real total = 0;
        for (long long row = offsets[sequence]; row < end; row++)
            total += x[row * width + column];
        out[i] = offsets[sequence] == end ? pad : total / divisors[sequence];
    }
}

extern "C" __global__ void pool_max(const real *x, const long long *offsets, real *out, int *index, real pad,
                                    long long width, long long size)
{
    FOR_MY_ELEMENTS(i, size) {
        const long long sequence = i / width, column = i % width, end = offsets[sequence + 1];
        int largest = -1;
        real value = pad;
        for (long long row = offsets[sequence]; row < end; row++) {
            const real other = x[row * width + column];
            if (largest < 0 || (value == value && !(other <= value))) {
                value = other;
                largest = (int)row;
            }
        }
        out[i] = value;
        index[i] = largest;
    }
}
"""


def pool_sum(x, offsets, divisors, pad, out):
    """Every row is read once."""
    if not fits(x, divisors, out):
        sequence.pool_sum.reference(x, offsets, divisors, pad, out)
        return
    launch(SOURCE, "pool_sum", out.size, x, offsets, divisors, out, x.dtype.type(pad), np.int64(x.shape[1]))


def pool_max(x, offsets, pad, out, index):
    """Every row is read once."""
    if not fits(x, out) or index.dtype != np.int32:
        sequence.pool_max.reference(x, offsets, pad, out, index)
        return
    launch(SOURCE, "pool_max", out.size, x, offsets, out, index, x.dtype.type(pad), np.int64(x.shape[1]))
