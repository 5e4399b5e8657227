"""A keeper's way through an update where memory is full."""

import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.arrays import ANY_HEIGHT, Rows
from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.parameter_server.tables.growing.eviction import LEAST_KEPT
from fleet_mpi.parameter_server.tables.growing.keeping import Keeping, pushes_of
from tests.unit.parameter_server.tables.growing.keeping_job import KeptBy, line


@settings(max_examples=25)
@given(st.lists(st.lists(st.integers(-4, 4), unique=True), min_size=1, max_size=4))
def test_pushes_are_counted_per_id(workers):
    merged = list(dict.fromkeys(one for worker in workers for one in worker))
    contributions = [Rows(line(*worker), None, ANY_HEIGHT) for worker in workers]
    assert pushes_of(line(*merged), contributions).tolist() == [
        sum(one in worker for worker in workers) for one in merged]


def full(when_full):
    """A table without room for another row, and how many it has."""
    table = KeptBy(Keeping(score="last_seen", evict=("at_most", LEAST_KEPT), every=1000, budget_bytes=200_000,
                           when_full=when_full))
    room = table.keepers[0].store.capacity
    for start in range(0, room, 100):
        table.push({one: 1.0 for one in range(start, min(start + 100, room))})
    assert table.keepers[0].store.count == room
    return table, room


def test_a_full_table_evicts_by_score_if_told_so_but_no_row_of_the_push():
    table, room = full("evict")
    table.push({0: 1.0, -1: 1.0, -2: 1.0})
    gone = set(range(room)) - set(table.ids)
    assert {0, -1, -2} < set(table.ids) and gone == set(range(1, room // 64 + 1))


def test_a_full_table_refuses_otherwise():
    table, room = full("refuse")
    before = table.rows
    with pytest.raises(EnvironmentProblem, match="there is room for"):
        table.push({0: 1.0, -1: 1.0})
    assert table.rows == before
