"""Squares of rows: the bits of the dense tree, for any rows and any cut."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi import update_rules
from fleet_mpi.kernels.reference import row_squares, update


def some_rows(rng, height, count, width, dtype=np.float32):
    return rng.permutation(height)[:count].astype(np.int64), rng.standard_normal((count, width)).astype(dtype)


def sum_case(height, count, width, dtype):
    return lambda rng: some_rows(rng, height, count, width, dtype)


def nodes_case(height, count, width, first_row):
    return lambda rng: (*some_rows(rng, height, count, width), first_row * width, height)


KERNEL_CASES = {
    "square_sum_rows": [sum_case(*shape, dtype) for dtype in (np.float32, np.float64)
                        for shape in ((5, 0, 3), (1, 1, 1), (50, 20, 9), (400, 30, 16), (7, 7, 5000))],
    "square_nodes_rows": [nodes_case(*shape) for shape in (
        (5, 0, 3, 2), (1, 1, 1, 0), (50, 20, 9, 0), (50, 20, 9, 13), (400, 30, 16, 77), (7, 7, 5000, 3))],
}


def dense(ids, values, height):
    table = np.zeros((height, *values.shape[1:]), values.dtype)
    table[ids] = values
    return table


@settings(max_examples=60)
@given(height=st.integers(1, 300), share=st.floats(0, 1), width=st.sampled_from([1, 2, 3, 9, 16, 33]),
       seed=st.integers(0, 9))
def test_the_sum_over_rows_has_the_bits_of_the_dense_sum(height, share, width, seed):
    ids, values = some_rows(np.random.default_rng(seed), height, int(share * height), width)
    assert row_squares.square_sum_rows(ids, values) == update.square_sum(dense(ids, values, height))


@settings(max_examples=60)
@given(height=st.integers(1, 200), share=st.floats(0, 1), width=st.sampled_from([1, 3, 9, 16]),
       cuts=st.lists(st.integers(0, 200), max_size=5), seed=st.integers(0, 9))
def test_the_nodes_of_any_cut_by_rows_are_those_of_the_dense_slices(height, share, width, cuts, seed):
    ids, values = some_rows(np.random.default_rng(seed), height, int(share * height), width)
    table, ends, nodes = dense(ids, values, height), sorted({0, height, *(one for one in cuts if one < height)}), []
    for begin, end in zip(ends, ends[1:]):
        mine = (ids >= begin) & (ids < end)
        found = row_squares.square_nodes_rows(ids[mine] - begin, values[mine], begin * width, end - begin)
        assert found == update.square_nodes(table[begin:end], begin * width)
        nodes += found
    assert update_rules.join_squares(nodes) == update.square_sum(table)


def test_rows_may_have_any_number_of_dimensions():
    rng = np.random.default_rng(0)
    ids, values = some_rows(rng, 40, 12, 6)
    assert row_squares.square_sum_rows(ids, values.reshape(12, 3, 2)) == row_squares.square_sum_rows(ids, values)


@pytest.mark.parametrize("ids", [[2 ** 40], [2 ** 40, 1]])
def test_a_far_row_costs_no_memory(ids):
    values = np.full((len(ids), 4), 0.5)
    assert row_squares.square_sum_rows(np.array(ids), values)[0] == len(ids)
