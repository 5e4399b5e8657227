"""Places of the largest: numba against the reference (by test_every_kernel), the reference against sorting."""

import numpy as np
import pytest

from fleet_mpi.kernels.reference.largest import largest_places


def case(widths, count, kinds):
    """Lines one behind the other, of numbers of so many kinds: equal ones are frequent."""
    widths = np.array(widths, np.int64)
    return lambda rng: (rng.integers(0, kinds, widths.sum()).astype(np.float32), np.cumsum(widths) - widths, widths,
                        int(widths.max(initial=0)), np.full((len(widths), count), 7, np.int32))


ALL = [([5, 0, 1, 9, 2], 3, 99), ([5, 0, 1, 9, 2], 12, 3), ([4, 4], 1, 2), ([0, 0], 2, 2), ([], 2, 2), ([40], 5, 9)]
KERNEL_CASES = {"largest_places": [case(*one) for one in ALL]}


@pytest.mark.parametrize("widths, count, kinds", ALL)
def test_the_largest_come_first_and_of_equals_the_first(widths, count, kinds):
    x, begins, _, longest, out = case(widths, count, kinds)(np.random.default_rng(3))
    largest_places(x, begins, np.array(widths, np.int64), longest, out)
    for begin, width, found in zip(begins, widths, out.tolist()):
        wanted = sorted(range(width), key=lambda place: -x[begin + place])[:count]  # sorting keeps the order of equals
        assert found == wanted + [-1] * (count - len(wanted))
