"""Which ids are stored: by exact counts, for any number of servers alike, and by draws with the right probability."""

import collections

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.kernels.reference import random
from fleet_mpi.parameter_server.tables.growing.admission import MOST_COUNTED, Probability, Seen, admission_of
from fleet_mpi.parameter_server.tables.growing.keeping import Keeping
from tests.unit.parameter_server.tables.growing.keeping_job import (
    KEY,
    KeptBy,
    drawn_rounds,
    line,
    same_for_any_number_of_servers,
)

ROUNDS = st.lists(st.lists(st.dictionaries(st.integers(-5, 5) | st.integers(-2 ** 63, 2 ** 63 - 1), st.just(1.0)),
                           min_size=2, max_size=2), max_size=8)


@settings(max_examples=25)
@given(ROUNDS, st.integers(1, 4))
def test_an_id_is_stored_with_its_kth_push_counted_exactly_where_ids_are_few(rounds, times):
    table, counts = KeptBy(Keeping(admit=("seen", times))), collections.Counter()
    for workers in rounds:
        table.push(*workers)
        counts.update(one for worker in workers for one in worker)
        assert table.ids == sorted(one for one, count in counts.items() if count >= times)


def test_the_same_ids_are_seen_often_enough_by_any_number_of_servers():
    table = same_for_any_number_of_servers(drawn_rounds(1, 12), admit=("seen", 3))
    assert 0 < len(table.ids) < 200


def test_the_gradient_of_an_id_that_waits_is_dropped():
    waited, fresh = KeptBy(Keeping(admit=("seen", 2))), KeptBy(Keeping(score="count"))
    waited.push({7: 5.0})
    assert waited.ids == []
    waited.push({7: 1.0})
    fresh.push({7: 1.0})
    assert waited.rows[7][:2] == fresh.rows[7][:2]


def test_counters_say_no_less_than_there_were_pushes_and_stay_at_their_most():
    seen, ids = Seen(MOST_COUNTED), np.arange(30000)
    for _ in range(2):
        seen.note(ids, np.full(len(ids), 100))
    assert not seen.admits(ids[:1], np.array([54]), 1)[0] and seen.admits(ids, np.full(len(ids), 55), 1).all()
    seen.note(ids, np.full(len(ids), 100))
    assert seen.counts.max() == MOST_COUNTED and seen.admits(ids, np.zeros(len(ids), int), 1).all()


def test_few_new_ids_find_both_of_their_counters_used():
    seen = Seen(2)
    seen.note(np.arange(1_000_000), np.ones(1_000_000, int))   # 0.03 per counter
    early = seen.admits(np.arange(10 ** 9, 10 ** 9 + 100_000), np.ones(100_000, int), 1).mean()
    assert 0.0005 < early < 0.0013


def test_a_counter_belongs_to_one_partition():
    """So what is approximate is the same for any number of servers."""
    from fleet_mpi.kernels.reference import partitions
    from fleet_mpi.parameter_server.tables.growing import admission
    ids = np.random.default_rng(0).integers(-2 ** 63, 2 ** 63 - 1, 1000)
    for cells in admission._cells(ids):
        assert np.array_equal(cells >> admission._CELL_BITS, partitions.partitions_of(ids))


# ---------------------------------------------------------------------- by probability


@pytest.mark.parametrize("probability", (0.1, 0.9))
def test_b26_the_probability_of_an_entry_is_that_of_being_admitted(probability):
    """The original admitted with 1 - p: semantics.md, section 10, B26."""
    ids = np.arange(100_000)
    admitted = Probability(probability, KEY).admits(ids, np.ones(len(ids), int), 1)
    assert abs(admitted.mean() - probability) < 0.005


def test_a_draw_is_that_of_id_and_update_alone():
    one, ids = Probability(0.5, KEY), line(-2 ** 63, -1, 0, 5, 2 ** 63 - 1)
    for update in (1, 2):
        expected = []
        for stream in ids.tolist():
            drawn = np.empty(1)
            random.uniform.reference(drawn, random.key_of(KEY, "admission", update), stream % 2 ** 64, 0, 0.0, 1.0)
            expected.append(drawn[0] < 0.5)
        assert one.admits(ids, np.ones(5, int), update).tolist() == expected


def test_every_meeting_is_another_chance():
    table, ids = KeptBy(Keeping(admit=("probability", 0.5))), {one: 1.0 for one in range(1000)}
    stored = []
    for _ in range(3):
        table.push(ids)
        stored.append(len(table.ids))
    assert all(abs(count - expected) < 60 for count, expected in zip(stored, (500, 750, 875)))


def test_the_same_ids_are_drawn_by_any_number_of_servers():
    table = same_for_any_number_of_servers(drawn_rounds(2, 5), admit=("probability", 0.3))
    assert 0 < len(table.ids) < 150


def test_without_words_there_is_no_admission():
    assert admission_of((), KEY) is None
