"""Float16 in memory, float32 in the arithmetic: what kernels whose sums are too long for float16 compute with."""

import numpy as np

HALF, SINGLE = np.dtype("float16"), np.dtype("float32")


def wide_type(dtype):
    """The type to compute with for numbers that lie in memory in this one."""
    return SINGLE if dtype == HALF else np.dtype(dtype)


def wide(array):
    """A float32 copy of float16 numbers; any other array as it is."""
    return array.astype(SINGLE) if array.dtype == HALF else array
