"""Sums over shared rows: every row of some columns, from the first row to the last; cases for test_every_kernel."""

import numpy as np

from fleet_mpi.kernels.reference.shared_sums import sum_everywhere


def case(ranks, size, start, stop, dtype):
    def make(rng):
        # Sizes far apart: another order of summation gives other bits.
        rows = rng.standard_normal((ranks, size)) * 10.0 ** rng.integers(-3, 4, (ranks, size))
        return rows.astype(dtype), start, stop
    return make


KERNEL_CASES = {"sum_everywhere": [case(ranks, size, start, stop, dtype)
                                   for ranks, size, start, stop in ((2, 100, 0, 100), (2, 10, 4, 4), (3, 5000, 7, 4999),
                                                                    (5, 4096, 0, 2048))
                                   for dtype in (np.float32, np.float64)]}


def test_other_columns_stay_as_they_are():
    rows, _, _ = case(3, 50, 0, 0, np.float32)(np.random.default_rng(1))
    before = rows.copy()
    sum_everywhere(rows, 10, 20)
    assert np.array_equal(rows[:, :10], before[:, :10]) and np.array_equal(rows[:, 20:], before[:, 20:])
    expected = (before[0] + before[1]) + before[2]
    assert all(row[10:20].tobytes() == expected[10:20].tobytes() for row in rows)
