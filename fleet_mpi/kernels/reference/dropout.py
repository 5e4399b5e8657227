"""Dropout's second half: a mask of zeros and ones applied. The mask itself is drawn by ``random.bernoulli_mask``."""

from fleet_mpi.kernels import kernel


@kernel
def apply_mask(x, mask, scale, out):
    """out = x mask scale; ``mask`` is uint8, all are lines (1-D, contiguous); ``out`` may be ``x``."""
    out[...] = x * (mask.astype(x.dtype) * scale)
