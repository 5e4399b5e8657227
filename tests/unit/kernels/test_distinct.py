"""Distinct numbers: numba against the reference (by test_every_kernel), the reference against what is promised."""

import itertools

import numpy as np
import pytest

from fleet_mpi.kernels.reference.distinct import distinct_numbers


def case(count, below, columns):
    return lambda rng: (rng.integers(0, 1 << 32, (count, columns), np.uint32), below,
                        np.full((count, columns), -9, np.int64))


ALL = [(3, 3, 50), (1, 1, 4), (0, 5, 3), (4, 9, 0), (20, 1000, 30), (3, (1 << 32) - 1, 40)]
KERNEL_CASES = {"distinct_numbers": [case(*one) for one in ALL]}


@pytest.mark.parametrize("count, below, columns", ALL)
def test_each_column_has_distinct_numbers_below(count, below, columns):
    words, _, out = case(count, below, columns)(np.random.default_rng(1))
    distinct_numbers(words, below, out)
    assert not out.size or 0 <= out.min() and out.max() < below
    assert all(len(set(column)) == count for column in out.T.tolist())


def test_every_order_of_every_choice_is_as_likely():
    words, below, out = case(3, 5, 30000)(np.random.default_rng(2))
    distinct_numbers(words, below, out)
    orders = list(itertools.permutations(range(5), 3))
    found = np.zeros(len(orders))
    for column in map(tuple, out.T.tolist()):
        found[orders.index(column)] += 1
    assert abs(found - 500).max() < 5 * np.sqrt(500)
