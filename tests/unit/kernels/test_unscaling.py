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


def zeroing(size, dtype, found):
    def make(rng):
        x = rng.standard_normal(size).astype(dtype)
        return x, np.array([found]), np.empty_like(x)
    return make


def scaling(found, scale, good, bad, dtype):
    """A step with the scale growing by 2 after 3 good ones, shrinking by 0.8 after 2 bad ones."""
    def make(rng):
        before = np.array([scale], dtype), np.array([good], np.int32), np.array([bad], np.int32)
        return np.array([found]), *before, *(np.empty_like(one) for one in before), 3, 2, 2.0, 0.8
    return make


KERNEL_CASES = {"unscale": [case(size, dtype, *odd) for dtype in (np.float16, np.float32, np.float64)
                            for size, odd in ((0, ()), (1, ()), (1027, ()), (1027, (np.inf,)), (300, (0.0, -np.inf)))]
                + [case(9, np.float32, found=True)],
                "zero_if": [zeroing(size, dtype, found) for dtype in (np.float16, np.float32, np.float64)
                            for size in (0, 1, 1027) for found in (False, True)],
                "next_scale": [scaling(found, scale, good, bad, dtype) for found in (False, True)
                               for scale in (1.0, 1.1, 32768.0, 3e38) for good in (0, 2) for bad in (0, 1)
                               for dtype in (np.float32, np.float64)]}


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


def test_gradients_are_zeroed_where_they_lie():
    for found, expected in ((False, [1, np.inf]), (True, [0, 0])):
        x = np.array([1, np.inf], np.float32)
        unscaling.zero_if.reference(x, np.array([found]), x)
        np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("found, scale, good, bad, expected", (
    (False, 8.0, 0, 1, (8.0, 1, 0)), (False, 8.0, 2, 0, (16.0, 0, 0)), (False, 3e38, 2, 0, (3e38, 0, 0)),
    (True, 8.0, 2, 0, (8.0, 0, 1)), (True, 8.0, 2, 1, (6.4, 0, 0)), (True, 1.1, 2, 1, (1.0, 0, 0))))
def test_the_scale_moves_after_enough_steps_in_a_row(found, scale, good, bad, expected):
    arguments = scaling(found, scale, good, bad, np.float32)(None)
    unscaling.next_scale.reference(*arguments)
    assert [one[0] for one in arguments[4:7]] == [np.float32(expected[0]), *expected[1:]]
