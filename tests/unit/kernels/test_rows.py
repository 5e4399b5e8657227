"""Rows by id: gather, scatter, merge, and what happens with ids that are not there."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.errors import ProgramError
from fleet_mpi.kernels.reference import rows
from fleet_mpi.testing import device


def table_of(rng, *shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def gather_case(ids_shape, table_shape, padding_idx):
    def make(rng):
        ids = rng.integers(0, table_shape[0], ids_shape)
        return table_of(rng, *table_shape), ids, np.empty(ids_shape + table_shape[1:], np.float32), padding_idx
    return make


def scatter_case(ids_shape, table_shape, padding_idx):
    def make(rng):
        ids = rng.integers(0, table_shape[0], ids_shape)
        return table_of(rng, *table_shape), ids, table_of(rng, *ids_shape, *table_shape[1:]), padding_idx
    return make


def merge_case(count, highest, row, dtype=np.float32):
    def make(rng):
        ids = rng.integers(-highest, highest, count)
        # Zeros, not undefined values: the part above the count must stay as it was in both versions.
        out_ids, out_values = np.zeros_like(ids), np.zeros((count, *row), dtype)
        return ids, table_of(rng, count, *row, dtype=dtype), out_ids, out_values, rows.merge_scratch(count)
    return make


def totals_case(count, lowest, highest, height, row=(3,), dtype=np.float32):
    """Ids from ``lowest`` up to ``highest``, some perhaps outside the table of this height."""
    def make(rng):
        ids, values = rng.integers(lowest, highest, count), table_of(rng, count, *row, dtype=dtype)
        return ids, values, height, np.zeros_like(ids), np.zeros_like(values)
    return make


def outside_case(ids, height):
    return lambda rng: (np.array(ids, np.int64), height)


def note_case(ids, *rest, before=(0, 0, 0)):
    return lambda rng: (np.array(ids, np.int64), *rest, np.array([*before, 0, 0], np.int64))


SHAPES = [((7,), (5, 3), -1), ((4, 1), (9, 2, 2), 4), ((0,), (5, 3), -1), ((300,), (8, 16), 0), ((6,), (5,), 2)]


def split_case(count, begins, owners):
    def make(rng):
        ids = rng.integers(0, begins[-1] + 40, count)
        return (ids, np.array(begins), rng.integers(-9, 9, len(begins)), np.array(owners), np.zeros(5, np.int64),
                np.empty_like(ids), np.empty_like(ids))
    return make


KERNEL_CASES = {
    "split_ids": [split_case(*case) for case in (
        (0, [0], [2]), (50, [0], [2]), (300, [0, 20, 60], [1, 0, 4]), (300, [0, 9, 20, 60], [3, 1, 3, 0]))],
    "gather_rows": [gather_case(*shape) for shape in SHAPES],
    "scatter_add_rows": [scatter_case(*shape) for shape in SHAPES],
    "merge_rows": [merge_case(0, 9, (3,)), merge_case(1, 9, (3,)), merge_case(500, 20, (4,)),
                   merge_case(500, 2 ** 62, (2, 3)), merge_case(64, 5, (), np.float64)],
    "total_rows": [totals_case(0, 0, 9, 9), totals_case(1, 0, 9, 9), totals_case(500, 0, 20, 20),
                   totals_case(300, -9, 20, 12, (2, 3), np.float64), totals_case(5, -9, -1, 12),
                   totals_case(5, 12, 20, 12), totals_case(64, 0, 5, 9, dtype=np.float16)],
    "note_outside": [
        note_case([0, 2, 1], 0, 3, 0, 4), note_case([0, 3, -1], 0, 3, 0, 4), note_case([[-5], [-1]], 0, 3, -5, 4),
        note_case([-7, 3], -(1 << 63), 3, 0, 4), note_case([9] * 3, 0, 3, 0, 5, before=(4, 1, 7)),
        note_case([0] * 9000 + [2 ** 62] * 2, 0, 3, 0, 2), note_case([], 0, 3, 0, 1), note_case([0], 0, 0, 0, 1)],
    "first_outside": [outside_case(*case) for case in
                      (([], 3), ([0, 2], 3), ([0, 3, -1], 3), ([[1], [-1]], 2), ([0], 0))],
}


def merged(ids, values):
    out_ids, out_values = np.empty_like(ids), np.empty_like(values)
    count = rows.merge_rows(ids, values, out_ids, out_values, rows.merge_scratch(len(ids)))
    return out_ids[:count], out_values[:count]


def merged_by_dictionary(ids, values):
    sums = {}
    for key, value in zip(ids.tolist(), values, strict=True):
        sums[key] = sums[key] + value if key in sums else value.copy()
    return list(sums), list(sums.values())


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(-3, 12) | st.integers(-2 ** 63, 2 ** 63 - 1), max_size=60),
       st.integers(0, 5), st.integers(0, 99))
def test_merging_sums_in_order_of_occurrence_like_a_dictionary(ids, width, seed):
    ids = np.array(ids, np.int64)
    values = np.random.default_rng(seed).standard_normal((len(ids), width)).astype(np.float32)
    got_ids, got_values = merged(ids, values)
    expected_ids, expected_values = merged_by_dictionary(ids, values)
    assert got_ids.tolist() == expected_ids
    np.testing.assert_array_equal(got_values, np.array(expected_values, np.float32).reshape(len(expected_ids), width))


def test_ids_whose_hashes_collide_stay_apart():
    ids = np.arange(4000, dtype=np.int64) << 32
    got_ids, got_values = merged(np.concatenate([ids, ids]), np.ones((8000, 1), np.float32))
    np.testing.assert_array_equal(got_ids, ids)
    assert (got_values == 2).all()


def test_a_scratch_table_of_more_ids_serves_fewer():
    ids, values = np.array([4, 9, 4]), np.ones((3, 2), np.float32)
    out_ids, out_values = np.empty_like(ids), np.empty_like(values)
    scratch = np.full_like(rows.merge_scratch(1000), 1)  # what an earlier call left
    assert rows.merge_rows(ids, values, out_ids, out_values, scratch) == 2
    assert out_ids[:2].tolist() == [4, 9]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1000, 1024, 1025])
def test_the_scratch_table_is_a_power_of_two_and_at_most_half_full(count):
    size = rows.scratch_size(count)
    assert size & (size - 1) == 0 and size >= 2 * count and size > count


def test_gather_copies_rows_and_clears_padding():
    table = np.arange(12, dtype=np.float32).reshape(4, 3) + 1
    out = np.full((3, 1, 3), -1, np.float32)
    rows.gather(table, np.array([[3], [1], [3]]), out, padding_idx=1)
    np.testing.assert_array_equal(out[:, 0], [[10, 11, 12], [0, 0, 0], [10, 11, 12]])


def test_scatter_adds_repeated_ids_and_skips_padding():
    table = np.zeros((3, 2))
    rows.scatter_add(table, np.array([2, 0, 2]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), padding_idx=0)
    np.testing.assert_array_equal(table, [[0, 0], [0, 0], [6, 8]])


@pytest.mark.parametrize("wrong", [-1, 4, 2 ** 40])
def test_an_id_outside_the_table_is_named_with_its_place_and_the_height(wrong):
    table, ids = np.zeros((4, 2)), np.array([[0], [3], [wrong]])
    with pytest.raises(ProgramError, match=rf"id {wrong} at position 2 of 3 .* 4 rows"):
        rows.gather(table, ids, np.empty((3, 1, 2)))
    with pytest.raises(ProgramError, match=f"id {wrong} at position 2"):
        rows.scatter_add(table, ids, np.ones((3, 1, 2)))
    with pytest.raises(ProgramError, match=f"id {wrong} at position 2"):
        rows.check_ids(ids, 4)
    assert not table.any(), "a refused scatter must change nothing"


def test_a_table_that_cannot_be_changed_through_a_view_is_refused():
    table = np.zeros((4, 6, 2))[:, ::2]
    with pytest.raises(ValueError, match="contiguous"):
        rows.scatter_add(table, np.array([1]), np.ones((1, 3, 2)))


def test_ids_are_split_by_their_owners_in_their_order():
    ids, counts = np.array([25, 3, 60, 19, 61, 3]), np.empty(3, np.int64)
    local, order = np.empty_like(ids), np.empty_like(ids)
    rows.split_ids(ids, np.array([0, 20, 60]), np.array([0, -20, -40]), np.array([2, 0, 2]), counts, local, order)
    assert counts.tolist() == [1, 0, 5]
    assert local.tolist() == [5, 3, 20, 19, 21, 3] and order.tolist() == [0, 1, 2, 3, 4, 5]
    rows.split_ids(ids, np.array([0, 20, 60]), np.array([0, -20, -60]), np.array([1, 2, 0]), counts, local, order)
    assert counts.tolist() == [2, 3, 1]
    assert local.tolist() == [0, 1, 3, 19, 3, 5] and order.tolist() == [2, 4, 1, 3, 5, 0]


def added_on_a_device(target, index, values):
    """The host's result and a device's, each in its own copy of the target's memory."""
    there = device.asarray(target.copy(order="K"))
    as_device = tuple(map(device.asarray, index)) if isinstance(index, tuple) else device.asarray(index)
    np.add.at(target, index, values)
    rows.add_at(there, as_device, device.asarray(values))
    return target, device.asnumpy(there)


@pytest.mark.parametrize("dtype", ("float16", "float32", "float64"))
@pytest.mark.parametrize("shape, index", (
    ((5,), lambda rng: rng.integers(0, 5, 300)),
    ((5, 3), lambda rng: rng.integers(0, 5, (100, 2))),
    ((2, 3, 4), lambda rng: (rng.integers(0, 2, (40, 1)), rng.integers(0, 3, (1, 9)))),
    ((2, 3, 4), lambda rng: tuple(rng.integers(0, size, 200) for size in (2, 3, 4))),
    ((4, 2), lambda rng: np.zeros(0, np.int64))))
def test_on_a_device_values_are_added_in_order_of_occurrence(shape, index, dtype):
    rng = np.random.default_rng(3)
    index = index(rng)
    depth = len(index) if isinstance(index, tuple) else 1
    values = table_of(rng, *np.broadcast_shapes(*(np.shape(one) for one in (index if depth > 1 else [index]))),
                      *shape[depth:], dtype=dtype)
    for target in (table_of(rng, *shape, dtype=dtype), table_of(rng, *shape[::-1], dtype=dtype).T):
        host, there = added_on_a_device(target, index, values)
        np.testing.assert_array_equal(there, host)


def test_one_value_for_all_places_is_spread():
    host, there = added_on_a_device(np.zeros((3, 2)), np.array([1, 1, 2]), 0.1)
    np.testing.assert_array_equal(there, host)


def test_the_order_would_be_missed():
    """cupy's own ``add.at`` gives other bits, also that of the stand-in: without this the tests above prove nothing."""
    values = np.random.default_rng(3).standard_normal(3000).astype(np.float32)
    there, host = device.zeros(1, "float32"), np.zeros(1, np.float32)
    device.add.at(there, device.zeros(3000, "int64"), device.asarray(values))
    np.add.at(host, np.zeros(3000, np.int64), values)
    assert device.asnumpy(there) != host


def test_every_row_gets_the_sum_of_its_id():
    ids, values = np.array([7, -1, 2, 7, 9, 2]), np.arange(6.0)[:, None]
    out_ids, out_values = np.empty_like(ids), np.empty_like(values)
    rows.total_rows(ids, values, 8, out_ids, out_values)
    assert out_ids.tolist() == [7, 7, 2, 7, 7, 2]  # those outside as the first inside
    assert out_values.ravel().tolist() == [3, 3, 7, 3, 3, 7]
