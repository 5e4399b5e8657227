"""Lookahead kernels: numba against the references (by test_every_kernel), the reference against loops."""

import numpy as np
import pytest

from fleet_mpi.kernels.reference import row_conv

LENGTHS = [[3, 1, 4], [0, 2, 0, 0, 5, 0], [1], [], [0], [7, 40, 2]]
WIDTH = 5


def offsets_of(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def unset(*shape):
    return np.full(shape, 99, np.float32)


def case(lengths, context):
    return lambda rng: (normal(rng, sum(lengths), WIDTH), offsets_of(lengths), normal(rng, context, WIDTH),
                        unset(sum(lengths), WIDTH))


def weight_case(lengths, context):
    return lambda rng: (normal(rng, sum(lengths), WIDTH), normal(rng, sum(lengths), WIDTH), offsets_of(lengths),
                        unset(context, WIDTH))


ALL = [(lengths, context) for lengths in LENGTHS for context in (1, 3, 9)]
KERNEL_CASES = {
    "look_ahead": [case(*one) for one in ALL],
    "look_ahead_data_grad": [case(*one) for one in ALL],
    "look_ahead_weight_grad": [weight_case(*one) for one in ALL],
}
KERNEL_TOLERANCES = {"look_ahead_weight_grad": 1e-4}


@pytest.mark.parametrize("lengths", LENGTHS)
def test_a_row_sees_the_rows_behind_it_in_its_sequence(lengths):
    x, offsets, weights, out = case(lengths, 3)(np.random.default_rng(1))
    row_conv.look_ahead(x, offsets, weights, out)
    for begin, end in zip(offsets, offsets[1:]):
        for row in range(begin, end):
            want = sum(x[row + k] * weights[k] for k in range(3) if row + k < end)
            np.testing.assert_allclose(out[row], want, rtol=1e-5, atol=1e-6)
