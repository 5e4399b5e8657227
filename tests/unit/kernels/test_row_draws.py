"""First values of rows: those of the row's own stream, whichever rows are drawn together."""

import numpy as np
import pytest

from fleet_mpi.kernels.reference import random, row_draws

KEY = random.key_of(7, "table", "x")
IDS = [0, 1, -1, 2 ** 63 - 1, -2 ** 63, 2 ** 40 + 3, 5, 5]


def draw_case(count, width, dtype, *numbers):
    def make(rng):
        ids = np.concatenate([np.array(IDS, np.int64), rng.integers(-2 ** 63, 2 ** 63 - 1, count)])[:count]
        return (ids, np.empty((count, width), dtype), *numbers)
    return make


def cases(*numbers):
    return [draw_case(*shape, *numbers) for shape in (
        (8, 16, np.float32), (8, 16, np.float64), (40, 3, np.float32), (9, 1, np.float32), (0, 4, np.float32),
        (2100, 9, np.float32))]


KERNEL_CASES = {"uniform": cases(KEY, -0.5, 0.25), "normal": cases(KEY, 0.5, 2.0),
                "truncated_normal": cases(KEY, 0.0, 0.1), "constant": cases(0.75)}


@pytest.mark.parametrize("name", ("uniform", "normal", "truncated_normal"))
@pytest.mark.parametrize("width", (1, 6, 16))
def test_a_row_is_the_beginning_of_its_stream(name, width):
    ids, out, row = np.array(IDS), np.empty((len(IDS), width), np.float32), np.empty(width, np.float32)
    getattr(row_draws, name)(ids, out, KEY, -1.0, 2.0)
    for i, key in enumerate(IDS):
        getattr(random, name)(row, KEY, key % 2 ** 64, 0, -1.0, 2.0)
        np.testing.assert_array_equal(out[i], row)
