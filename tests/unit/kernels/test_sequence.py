"""Kernels over ragged sequences: numba against the references (by test_every_kernel), references against loops."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.kernels.reference import sequence

LENGTHS = [[3, 1, 4], [0, 2, 0, 0, 5, 0], [1], [], [0], [7, 300, 2]]
WIDTH = 5


def offsets_of(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def normal(rng, *shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def unset(*shape, dtype=np.float32):
    return np.full(shape, 99, dtype)


def divisors_of(lengths):
    return np.sqrt(np.maximum(lengths, 1)).astype(np.float32)


def rows_case(count, highest, out_rows, dtype=np.float32):
    """Arguments of take_rows; some rows are -1."""
    def make(rng):
        rows = rng.integers(-1, highest, out_rows) if highest else np.full(out_rows, -1)
        return normal(rng, count, WIDTH, dtype=dtype), rows, 7, unset(out_rows, WIDTH, dtype=dtype)
    return make


def adding_case(count, height):
    return lambda rng: (normal(rng, count, WIDTH), rng.integers(-1, height, count), unset(height, WIDTH))


def sum_case(lengths):
    return lambda rng: (normal(rng, sum(lengths), WIDTH), offsets_of(lengths), divisors_of(lengths), 0.5,
                        unset(len(lengths), WIDTH))


def sum_grad_case(lengths):
    return lambda rng: (normal(rng, len(lengths), WIDTH), offsets_of(lengths), divisors_of(lengths),
                        unset(sum(lengths), WIDTH))


def max_case(lengths, steps=1000):
    """With few steps many values are equal."""
    return lambda rng: (rng.integers(0, steps, (sum(lengths), WIDTH)).astype(np.float32), offsets_of(lengths), 0.5,
                        unset(len(lengths), WIDTH), unset(len(lengths), WIDTH, dtype=np.int32))


def max_of_nan_case(rng):
    x = normal(rng, 6, WIDTH)
    x[[0, 2, 3, 5], [0, 1, 1, 2]] = np.nan
    return x, offsets_of([2, 4]), 0.0, unset(2, WIDTH), unset(2, WIDTH, dtype=np.int32)


def max_grad_case(lengths):
    def make(rng):
        index = np.array([rng.integers(begin, end, WIDTH) if end > begin else np.full(WIDTH, -1)
                          for begin, end in zip(offsets_of(lengths), offsets_of(lengths)[1:])], np.int32)
        return (normal(rng, len(lengths), WIDTH), index.reshape(-1, WIDTH), offsets_of(lengths),
                unset(sum(lengths), WIDTH))
    return make


def softmax_case(lengths):
    return lambda rng: (normal(rng, sum(lengths)) * 20, offsets_of(lengths), unset(sum(lengths)))


def softmax_grad_case(lengths):
    return lambda rng: (normal(rng, sum(lengths)), normal(rng, sum(lengths)), offsets_of(lengths), unset(sum(lengths)))


def windows_case(lengths, start, length, dtype=np.float32):
    return lambda rng: (normal(rng, sum(lengths), WIDTH, dtype=dtype), offsets_of(lengths), start, 3,
                        unset(sum(lengths), length, WIDTH, dtype=dtype))


def add_windows_case(lengths, start, length):
    return lambda rng: (normal(rng, sum(lengths), length, WIDTH), offsets_of(lengths), start,
                        unset(sum(lengths), WIDTH))


def for_all(make, *rest):
    return [make(lengths, *rest) for lengths in LENGTHS]


KERNEL_CASES = {
    "take_rows": [rows_case(6, 6, 20), rows_case(0, 0, 3), rows_case(4, 4, 0), rows_case(5, 5, 9, np.int64)],
    "add_rows": [adding_case(20, 6), adding_case(0, 3), adding_case(7, 30)],
    "pool_sum": for_all(sum_case),
    "pool_sum_grad": for_all(sum_grad_case),
    "pool_max": for_all(max_case) + for_all(max_case, 2) + [max_of_nan_case],
    "pool_max_grad": for_all(max_grad_case),
    "softmax": for_all(softmax_case),
    "softmax_grad": for_all(softmax_grad_case),
    "windows": for_all(windows_case, -1, 3) + for_all(windows_case, 2, 1) + [windows_case([3, 2], 0, 2, np.int64)],
    "add_windows": for_all(add_windows_case, -1, 3) + for_all(add_windows_case, 2, 1),
}
KERNEL_TOLERANCES = {"softmax": 1e-6, "softmax_grad": 1e-5}

some_lengths = st.lists(st.integers(0, 6), min_size=1, max_size=8)


def pieces(x, lengths):
    return np.split(x, np.cumsum(lengths)[:-1])


@settings(max_examples=60, deadline=None)
@given(some_lengths, st.integers(0, 99))
def test_sums_equal_those_of_the_pieces(lengths, seed):
    x, offsets, divisors, pad, out = sum_case(lengths)(np.random.default_rng(seed))
    sequence.pool_sum(x, offsets, divisors, pad, out)
    expected = [piece.sum(0) / divisor if len(piece) else np.full(WIDTH, pad)
                for piece, divisor in zip(pieces(x, lengths), divisors)]
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(some_lengths, st.integers(1, 4), st.integers(0, 99))
def test_the_largest_of_equals_is_the_first(lengths, steps, seed):
    x, offsets, pad, out, index = max_case(lengths, steps)(np.random.default_rng(seed))
    sequence.pool_max(x, offsets, pad, out, index)
    for i, piece in enumerate(pieces(x, lengths)):
        if len(piece):
            np.testing.assert_array_equal(out[i], piece.max(0))
            np.testing.assert_array_equal(index[i], offsets[i] + piece.argmax(0))
        else:
            assert (out[i] == pad).all() and (index[i] == -1).all()


@settings(max_examples=60, deadline=None)
@given(some_lengths, st.integers(-3, 3), st.integers(1, 4), st.integers(0, 99))
def test_windows_see_their_own_sequence_only(lengths, start, length, seed):
    x, offsets, _, pad, out = windows_case(lengths, start, length)(np.random.default_rng(seed))
    sequence.windows(x, offsets, start, pad, out)
    row = 0
    for piece in pieces(x, lengths):
        for i in range(len(piece)):
            for k in range(length):
                inside = 0 <= i + start + k < len(piece)
                np.testing.assert_array_equal(out[row, k], piece[i + start + k] if inside else np.full(WIDTH, pad))
            row += 1


def test_softmax_of_large_numbers_stays_finite():
    out = unset(3)
    sequence.softmax(np.array([1e30, -1e30, 5], np.float32), offsets_of([2, 1]), out)
    np.testing.assert_array_equal(out, [1, 0, 1])


@pytest.mark.parametrize("lengths", LENGTHS)
def test_every_row_knows_its_sequence(lengths):
    expected = np.repeat(np.arange(len(lengths)), lengths)
    np.testing.assert_array_equal(sequence.sequence_of_rows(offsets_of(lengths), sum(lengths)), expected)
