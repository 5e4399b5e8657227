"""Slots of growing tables: every id keeps one slot, given away in order of first use."""

import numpy as np
from hypothesis import given, settings, strategies as st

from fleet_mpi.kernels.reference import slots

ANY_ID = st.integers(-2 ** 63, 2 ** 63 - 1) | st.integers(0, 20)


def empty_table(capacity):
    return np.full(capacity, slots.FREE, np.int64), np.full(slots.index_size(capacity), -1, np.int64)


def find_case(count, highest, capacity, may_add, before=()):
    def make(rng):
        keys, index = empty_table(capacity)
        first = np.array(before, np.int64)
        slots.find_slots.reference(first, keys, index, np.zeros_like(first), True)
        ids = rng.integers(-highest, highest, count)
        return ids, keys, index, np.zeros(count, np.int64), may_add
    return make


KERNEL_CASES = {"find_slots": [find_case(0, 5, 4, True), find_case(300, 9, 64, True),
                               find_case(300, 2 ** 62, 301, True),
                               find_case(50, 9, 64, False, before=[3, -4, 7]), find_case(1, 2, 1, True)]}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(ANY_ID, max_size=30), max_size=5))
def test_slots_are_those_of_a_dictionary(batches):
    keys, index = empty_table(200)
    known = {}
    for batch in batches:
        ids = np.array(batch, np.int64)
        found = np.zeros_like(ids)
        count = slots.find_slots(ids, keys, index, found, True)
        assert [known.setdefault(key, len(known)) for key in batch] == found.tolist()
        assert count == slots.used(index) == len(known)
    assert keys[:len(known)].tolist() == list(known)


def test_an_id_that_is_not_there_is_not_added_unless_asked():
    keys, index = empty_table(4)
    found = np.zeros(2, np.int64)
    assert slots.find_slots(np.array([5, 5]), keys, index, found, False) == 0
    assert found.tolist() == [slots.NOT_THERE] * 2


def test_a_full_table_says_so_and_loses_nothing():
    keys, index = empty_table(2)
    found = np.zeros(3, np.int64)
    assert slots.find_slots(np.array([1, 2, 3]), keys, index, found, True) == -1
    assert slots.find_slots(np.array([2, 1, 2]), keys, index, found, True) == 2
    assert found.tolist() == [1, 0, 1]
