"""The kernel that applies dropout's mask."""

import numpy as np

from fleet_mpi.kernels.reference.dropout import apply_mask


def masked(size, dtype):
    return lambda rng: (rng.normal(size=size).astype(dtype), rng.integers(0, 2, size).astype(np.uint8), 1.25,
                        np.empty(size, dtype))


KERNEL_CASES = {"apply_mask": [masked(size, dtype) for size in (0, 1, 1000) for dtype in (np.float32, np.float64)]}


def test_the_mask_may_be_applied_in_place():
    x = np.array([1, 2, 3], np.float32)
    apply_mask(x, np.array([1, 0, 1], np.uint8), 2.0, x)
    assert x.tolist() == [2, 0, 6]
