"""Unscaling: the quotient, and whether all was finite; cases for test_every_kernel and for the CUDA sources."""

import numpy as np
import pytest

from fleet_mpi.kernels.reference import unscaling


def case(size, dtype, *odd, found=False):
    def make(rng):
        x = rng.standard_normal(size).astype(dtype)
        x[size // 2:size // 2 + len(odd)] = odd
        return x, np.array([1 / 3], np.float32), np.array([found]), np.empty_like(x)
    return make


KERNEL_CASES = {"unscale": [case(size, dtype, *odd) for dtype in (np.float16, np.float32, np.float64)
                            for size, odd in ((0, ()), (1, ()), (1027, ()), (1027, (np.inf,)), (300, (0.0, -np.inf)))]
                + [case(9, np.float32, found=True)]}


@pytest.mark.parametrize("odd, is_found", (((), False), ((np.inf,), True), ((-np.inf,), True), ((np.nan,), True)))
def test_what_is_not_finite_is_found(odd, is_found):
    x, inverse, found, out = case(20, np.float32, *odd)(np.random.default_rng(0))
    unscaling.unscale(x, inverse, found, out)
    assert found.tolist() == [is_found]
    np.testing.assert_array_equal(out, x * np.float32(1 / 3))


def test_what_was_found_before_stays_found():
    arguments = case(20, np.float32, found=True)(np.random.default_rng(0))
    unscaling.unscale(*arguments)
    assert arguments[2].tolist() == [True]
