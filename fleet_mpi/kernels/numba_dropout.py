"""Dropout's mask applied to host arrays, in one pass."""

from fleet_mpi.kernels.numba_settings import compiled


def apply_mask(x, mask, scale, out):
    """A product, so that a NaN that is dropped still shows, as in the reference."""
    _apply_mask(x, mask, x.dtype.type(scale), out)


@compiled
def _apply_mask(x, mask, scale, out):
    kind = x.dtype.type
    for i in range(x.size):
        out[i] = x[i] * (kind(mask[i]) * scale)
