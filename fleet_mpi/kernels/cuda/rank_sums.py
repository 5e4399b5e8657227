"""Sums over ranks for cupy's arrays: one thread adds an element's parts in rank order."""

import numpy as np

from fleet_mpi.kernels.cuda.compiling import fits, launch
from fleet_mpi.kernels.reference import rank_sums

# One text for both: halves are widened when read, and rounded when the sum is written.
SOURCE = r"""
extern "C" __global__ void sum_of_ranks(const stored *parts, stored *out, long long ranks, long long size)
{
    FOR_MY_ELEMENTS(i, size) {
        real total = widen(parts[i]);
        for (long long rank = 1; rank < ranks; rank++)
            total += widen(parts[rank * size + i]);
        out[i] = narrow(total);
    }
}
"""


def sum_of_ranks(parts, out):
    """Every part is read once, the sum written once."""
    _sum(parts, out, ("float32", "float64"), rank_sums.sum_of_ranks)


def sum_of_half_ranks(parts, out):
    """As ``sum_of_ranks``, in float32."""
    _sum(parts, out, ("float16",), rank_sums.sum_of_half_ranks)


def _sum(parts, out, dtypes, kernel):
    if fits(parts, out, dtypes=dtypes):
        launch(SOURCE, "sum_of_ranks", out.size, parts, out, np.int64(parts.shape[0]))
    else:
        kernel.reference(parts, out)
