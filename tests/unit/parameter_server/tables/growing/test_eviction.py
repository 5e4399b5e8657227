"""Which rows are forgotten: exactly those that a plain Python model forgets, for any number of servers."""

import collections

import numpy as np
from hypothesis import given, settings, strategies as st

from fleet_mpi.kernels.reference import partitions
from fleet_mpi.parameter_server.tables.growing import eviction
from fleet_mpi.parameter_server.tables.growing.eviction import LEAST_KEPT, PARTITIONS
from fleet_mpi.parameter_server.tables.growing.keeping import Keeping
from tests.unit.parameter_server.tables.growing.keeping_job import (
    KeptBy,
    drawn_rounds,
    line,
    new_keeper,
    same_for_any_number_of_servers,
)

ROUNDS = st.lists(st.lists(st.dictionaries(st.integers(-9, 9), st.just(1.0)), min_size=2, max_size=2), max_size=10)


@settings(max_examples=25)
@given(ROUNDS, st.integers(1, 4), st.integers(1, 3))
def test_older_than_forgets_what_none_of_the_last_updates_had(rounds, number, every):
    table, last = KeptBy(Keeping(score="last_seen", evict=("older_than", number), every=every)), {}
    for update, workers in enumerate(rounds, 1):
        table.push(*workers)
        last.update({one: update for worker in workers for one in worker})
        if update % every == 0:
            last = {one: seen for one, seen in last.items() if update - seen < number}
        assert table.ids == sorted(last)


@settings(max_examples=25)
@given(ROUNDS, st.integers(1, 4), st.integers(1, 3))
def test_fewer_than_counts_from_one_look_to_the_next(rounds, number, every):
    table, counts = KeptBy(Keeping(score="count", evict=("fewer_than", number), every=every)), collections.Counter()
    for update, workers in enumerate(rounds, 1):
        table.push(*workers)
        counts.update(one for worker in workers for one in worker)
        if update % every == 0:
            counts = collections.Counter({one: 0 for one, count in counts.items() if count >= number})
        assert {one: row[2] for one, row in table.rows.items()} == dict(counts)


def plain_at_most(rows, number):
    """The ids that stay, of {id: score}."""
    by_partition = collections.defaultdict(list)
    for one, score in rows.items():
        by_partition[int(partitions.partitions_of(line(one))[0])].append((score, one))
    return sorted(one for found in by_partition.values() for _, one in sorted(found)[-(number // PARTITIONS):])


def test_at_most_n_are_spread_over_1024_partitions():
    draw, number = np.random.default_rng(5), LEAST_KEPT + 1000   # the share is that of the least
    ids = draw.choice(10 ** 9, 20000, replace=False)
    scores = draw.integers(0, 4, len(ids)).astype(np.int32)
    going = eviction.at_most(ids, scores, 0, number)
    left = np.delete(ids, going)
    assert sorted(left.tolist()) == plain_at_most(dict(zip(ids.tolist(), scores.tolist())), number)
    assert np.bincount(partitions.partitions_of(left)).max() == 16 and len(left) <= number


def test_a_table_that_is_full_keeps_more_than_nine_tenths_of_the_least_that_may_be_asked_for():
    ids = np.arange(2 * LEAST_KEPT)
    left = len(ids) - len(eviction.at_most(ids, np.zeros(len(ids), np.int32), 0, LEAST_KEPT))
    assert 0.9 * LEAST_KEPT < left <= LEAST_KEPT
    left = LEAST_KEPT - len(eviction.at_most(ids[:LEAST_KEPT], np.zeros(LEAST_KEPT, np.int32), 0, LEAST_KEPT))
    assert 0.89 * LEAST_KEPT < left


def test_nothing_is_evicted_below_the_share():
    assert not len(eviction.at_most(np.arange(500), np.zeros(500, np.int32), 0, LEAST_KEPT))
    assert not len(eviction.at_most(line(), np.zeros(0, np.int32), 0, LEAST_KEPT))


def test_the_same_rows_are_evicted_by_any_number_of_servers():
    rounds = drawn_rounds(6, 12)
    for words in ({"score": "last_seen", "evict": ("older_than", 3), "every": 2},
                  {"score": "count", "evict": ("fewer_than", 3), "every": 4},
                  {"admit": ("seen", 2), "score": "count", "evict": ("fewer_than", 2), "every": 3}):
        assert len(same_for_any_number_of_servers(rounds, **words).ids) < 150
    many = [[{one: 1.0 for one in range(step * 9000, step * 9000 + 18000)}] for step in range(2)]
    table = same_for_any_number_of_servers(many, score="count", evict=("at_most", LEAST_KEPT))
    assert 0.9 * LEAST_KEPT < len(table.ids) < LEAST_KEPT


def test_lowest_scores_go_first_then_lowest_ids():
    ids, scores = line(5, -3, 9, 1, 7), np.array([2, 1, 1, 1, 0], np.int32)
    for number, staying, expected in ((1, line(4), {1}), (2, line(4), {1, 3}), (3, line(4), {1, 2, 3}),
                                      (2, line(), {1, 4}), (9, line(), {0, 1, 2, 3, 4}), (9, line(0), {1, 2, 3, 4})):
        assert set(eviction.lowest(ids, scores, number, staying).tolist()) == expected


def test_a_row_that_comes_back_begins_anew():
    keeper = new_keeper(Keeping(score="last_seen", evict=("older_than", 1)))
    table = KeptBy(keeper.keeping)
    table.push({1: 1.0})
    first = table.rows[1][:2]
    table.push({2: 1.0})
    assert table.ids == [2]
    table.push({1: 1.0})
    assert table.rows[1][:2] == first


@settings(max_examples=25)
@given(ROUNDS, st.integers(1, 4), st.integers(1, 3))
def test_unseen_forgets_what_was_looked_at_so_often_since_its_last_push(rounds, number, every):
    table, looks = KeptBy(Keeping(score="unseen", evict=("unseen", number), every=every)), {}
    for update, workers in enumerate(rounds, 1):
        table.push(*workers)
        looks.update({one: 0 for worker in workers for one in worker})
        if update % every == 0:
            looks = {one: count + 1 for one, count in looks.items() if count + 1 < number}
        assert table.ids == sorted(looks)
