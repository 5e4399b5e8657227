"""Sums over ranks: from left to right, halves rounded once; cases for test_every_kernel and for the CUDA sources."""

import numpy as np
import pytest

from fleet_mpi.kernels.reference import rank_sums


def case(ranks, size, dtype):
    def make(rng):
        # Sizes far apart: another order of summation gives other bits.
        parts = rng.standard_normal((ranks, size)) * 10.0 ** rng.integers(-3, 4, (ranks, size))
        return parts.astype(dtype), np.empty(size, dtype)
    return make


KERNEL_CASES = {
    "sum_of_ranks": [case(ranks, size, dtype) for ranks, size in ((1, 5), (2, 0), (3, 1027), (8, 300))
                     for dtype in (np.float32, np.float64)],
    "sum_of_half_ranks": [case(ranks, size, np.float16) for ranks, size in ((1, 5), (2, 0), (3, 1027), (8, 300))],
}


def test_parts_are_added_from_left_to_right():
    parts, out = case(5, 400, np.float32)(np.random.default_rng(1))
    rank_sums.sum_of_ranks(parts, out)
    expected = (((parts[0] + parts[1]) + parts[2]) + parts[3]) + parts[4]
    assert out.tobytes() == expected.tobytes()
    assert out.tobytes() != (parts[4] + parts[3] + parts[2] + parts[1] + parts[0]).tobytes(), "this shows nothing"


def test_halves_are_rounded_once():
    parts, out = np.array([[2048], [1], [1]], np.float16), np.empty(1, np.float16)
    rank_sums.sum_of_half_ranks(parts, out)
    assert out.tolist() == [2050]  # 2048 + 1 is 2048 in halves, and again


@pytest.mark.parametrize("big, sum_", ((60000, np.inf), (30000, 60000)))
def test_sums_beyond_the_largest_half_are_infinite(big, sum_):
    out = np.empty(1, np.float16)
    with np.errstate(over="ignore"):
        rank_sums.sum_of_half_ranks(np.full((2, 1), big, np.float16), out)
    assert out[0] == np.float16(sum_)
