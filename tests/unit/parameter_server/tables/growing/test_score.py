"""Scores of rows against a plain Python count."""

import collections

import numpy as np
from hypothesis import given, settings, strategies as st

from fleet_mpi.parameter_server.tables.growing import score
from fleet_mpi.parameter_server.tables.growing.keeping import Keeping
from tests.unit.parameter_server.tables.growing.keeping_job import (
    KeptBy,
    drawn_rounds,
    line,
    same_for_any_number_of_servers,
)

ROUNDS = st.lists(st.lists(st.dictionaries(st.integers(-5, 5), st.just(1.0)), min_size=3, max_size=3), max_size=8)


@settings(max_examples=25)
@given(ROUNDS)
def test_a_count_is_that_of_the_pushes_that_had_the_row(rounds):
    table, counts = KeptBy(Keeping(score="count")), collections.Counter()
    for workers in rounds:
        table.push(*workers)
        counts.update(one for worker in workers for one in worker)
        assert {one: row[2] for one, row in table.rows.items()} == counts


@settings(max_examples=25)
@given(ROUNDS)
def test_last_seen_is_the_number_of_the_update_also_where_others_bring_nothing(rounds):
    table, last = KeptBy(Keeping(score="last_seen")), {}
    for update, workers in enumerate(rounds, 1):
        table.push(*workers)
        last.update({one: update for worker in workers for one in worker})
        assert {one: row[2] for one, row in table.rows.items()} == last


def test_scores_are_the_same_for_any_number_of_servers():
    for name in score.SCORES:
        same_for_any_number_of_servers(drawn_rounds(3, 6), score=name)


def test_scores_stay_at_their_most():
    scores = np.array([score.MOST - 1, 5], np.int32)
    for _ in range(2):
        score.count(scores, line(0, 1), np.array([3, 3]), 1)
    assert scores.tolist() == [score.MOST, 11]
    score.last_seen(scores, line(1), np.array([1]), score.MOST + 10)
    assert scores.tolist() == [score.MOST, score.MOST]
