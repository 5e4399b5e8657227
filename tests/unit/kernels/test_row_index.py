"""The index of growing tables. With growth and erasure against a dictionary: tables/growing/test_store.py."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.kernels.reference import row_index

ANY_ID = st.integers(-2 ** 63, 2 ** 63 - 1) | st.integers(-3, 30)
SIZE = 64


def index_of(ids, size=SIZE):
    """Keys and entries that hold these ids in slots 0, 1, ..."""
    keys, entries = np.zeros(size, np.int64), np.zeros(size, np.uint32)
    ids = np.array(ids, np.int64)
    row_index.insert.reference(ids, keys, entries, np.full(len(ids), -1, np.int32), 0, len(ids))
    return keys, entries


def ids_case(rng, count):
    return np.concatenate([rng.integers(-2 ** 63, 2 ** 63 - 1, count), np.arange(count)])


def find_case(count):
    def make(rng):
        ids = ids_case(rng, count)
        return rng.permutation(ids), *index_of(ids[count // 2:]), np.zeros(len(ids), np.int32)
    return make


def insert_case(count, most):
    def make(rng):
        ids = ids_case(rng, count)
        keys, entries = index_of(ids[:2])
        slots = np.full(2 * len(ids), -1, np.int32)
        slots[:len(ids[:2])] = range(len(ids[:2]))
        return np.tile(ids, 2), keys, entries, slots, len(ids[:2]), most
    return make


def erase_case(count, cursor, gone):
    def make(rng):
        ids = ids_case(rng, count)
        keys, entries = index_of(ids)
        growing = index_of(ids[:cursor], 2 * SIZE)[1] if cursor else np.zeros(0, np.uint32)
        chosen = np.concatenate([rng.permutation(ids)[:gone], ids[:1], [99]])
        return chosen, keys, entries, growing, np.zeros((len(chosen), 2), np.int32), len(ids), cursor
    return make


def enter_case(count, begin):
    def make(rng):
        ids = ids_case(rng, count)
        return index_of(ids)[0], index_of(ids[:begin], 2 * SIZE)[1], begin, len(ids)
    return make


def slots_case(slots, count):
    return lambda rng: (np.array(slots, np.int32), np.zeros(8, np.uint8), count)


KERNEL_CASES = {
    "find": [find_case(0), find_case(1), find_case(24)],
    "insert": [insert_case(0, 9), insert_case(20, 40), insert_case(20, 17), insert_case(1, 2)],
    "enter": [enter_case(3, 0), enter_case(24, 10), enter_case(24, 48)],
    "erase": [erase_case(24, cursor, gone) for cursor in (0, 1, 20, 48) for gone in (0, 5, 48)],
    "first_unfit": [slots_case(*case) for case in (
        ([], 0), ([0], 0), ([3, 0, 2, 1], 4), ([3, 0, 4], 4), ([3, -1], 4), ([7, 8, 9, 7], 60), ([59, 0, 59], 60))],
}


@settings(max_examples=60, deadline=None)
@given(st.lists(ANY_ID, unique=True, max_size=45), st.lists(ANY_ID, max_size=45), st.integers(0, 45))
def test_both_indexes_are_right_after_erasing_while_one_grows(ids, gone, cursor):
    keys, entries = index_of(ids)
    cursor = min(cursor, len(ids))
    growing = index_of(ids[:cursor], 2 * SIZE)[1]
    gone = np.array(gone + ids[::3], np.int64)
    moves = np.zeros((len(gone), 2), np.int32)
    count, cursor = row_index.erase(gone, keys, entries, growing, moves, len(ids), cursor)
    left = [key for key in ids if key not in set(gone.tolist())]
    assert sorted(keys[:count].tolist()) == sorted(left)
    for index, end in ((entries, count), (growing, cursor)):
        slots = np.empty(count, np.int32)
        row_index.find(keys[:count], keys, index, slots)
        assert slots.tolist() == [*range(end), *[-1] * (count - end)]
        assert np.count_nonzero(index) == end
    row_index.enter(keys, growing, cursor, count)
    row_index.find(keys[:count], keys, growing, slots := np.empty(count, np.int32))
    assert slots.tolist() == [*range(count)]


@pytest.mark.parametrize("step", (1, 1 << 32, 1000))
def test_neighbouring_ids_spread_over_all_bits(step):
    hashes = np.array([row_index.hashed(number * step - 5) for number in range(50_000)], np.uint64)
    for shift in (0, 24, 54):
        counts = np.bincount((hashes >> np.uint64(shift) & np.uint64(511)).astype(np.int64), minlength=512)
        assert 50 < counts.min() and counts.max() < 150


def test_marks_are_clean_afterwards():
    marks = np.zeros(4, np.uint8)
    assert row_index.first_unfit(np.array([9, 8, 9], np.int32), marks, 30) == 2
    assert row_index.first_unfit(np.array([9, 8, 7], np.int32), marks, 30) == -1
    assert not marks.any()
