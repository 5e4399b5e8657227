"""A worker's own copies of rows: which are kept, what goes to the servers, what comes back."""

import numpy as np
import pytest

from fleet_mpi.arrays import ANY_HEIGHT
from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.parameter_server.tables.growing import budget, copies
from fleet_mpi.parameter_server.tables.growing.description import GrowingDescription
from fleet_mpi.update_rules import MergedRows


def made(rule="sgd", share=1.0, **hypers):
    """Copies of rows of two elements, which move back by their gradients."""
    described = GrowingDescription("t", 2, "float32", recipe(rule, "rate", **hypers), is_copied=True)
    return described.copies({"rate": np.ones(1, "float32")}, share)


def line(*ids):
    """As int64."""
    return np.array(ids, np.int64)


def take(rows, ids, value):
    """Let copies have what servers are said to have."""
    rows.take(line(*ids), np.full((len(ids), 2), value, "float32"))


def update(rows, ids, grad):
    """One step."""
    rows.update(MergedRows(line(*ids), np.full((len(ids), 2), grad, "float32"), ANY_HEIGHT))


def exchange(rows, value):
    """{id: what goes}; the servers answer with one value for all."""
    sent = rows.moved()
    assert sent.ids.tolist() == rows.moving.tolist()
    rows.settle(np.full((len(sent.ids), 2), value, "float32"))
    return dict(sorted(zip(sent.ids.tolist(), sent.values[:, 0].tolist())))


def read(rows, *ids):
    """First elements."""
    out = np.empty((len(ids), 2), "float32")
    rows.read(line(*ids), out)
    return out[:, 0].tolist()


def test_rows_are_missing_once_each_until_they_came():
    rows = made()
    assert rows.missing(line(5, -3, 5)).tolist() == [-3, 5]
    take(rows, [-3, 5], 1.0)
    assert not len(rows.missing(line(5, -3, 7)[:2])) and rows.missing(line(5, 7)).tolist() == [7]


def test_the_share_goes_and_what_servers_moved_by_comes():
    rows = made(share=0.5)
    take(rows, [1, 2], 10.0)
    update(rows, [1], -4.0)
    assert exchange(rows, 13.0) == {1: 2.0}        # old is 12 then: 14 + 13 - 12
    assert read(rows, 1) == [15.0]
    update(rows, [1], 0.0)
    assert exchange(rows, 13.0) == {1: 1.0}        # (15 - 13) / 2; old 14: 15 + 13 - 14
    assert read(rows, 1) == [14.0]


def test_a_row_without_a_part_in_an_exchange_is_missing_and_moves_when_it_comes():
    rows = made()
    take(rows, [1, 2], 10.0)
    update(rows, [1, 2], -4.0)
    exchange(rows, 14.0)
    update(rows, [1], -1.0)
    exchange(rows, 15.0)
    assert rows.missing(line(1, 2)).tolist() == [2]
    take(rows, [2], 11.0)
    assert read(rows, 1, 2) == [15.0, 11.0] and not len(rows.missing(line(1, 2)))


def test_rows_that_were_only_looked_at_are_forgotten(monkeypatch):
    rows = made()
    take(rows, [1, 2, 3], 10.0)
    update(rows, [2], 1.0)
    exchange(rows, 9.0)
    assert rows.store.ids().tolist() == [2]
    monkeypatch.setattr(copies, "MOST_LOOKED_AT", 2)
    take(rows, [4, 5], 10.0)
    rows.make_room()
    assert rows.store.count == 3
    take(rows, [6], 10.0)
    rows.make_room()
    assert rows.store.ids().tolist() == [2]


def test_replaced_values_are_taken_as_they_are_and_states_stay():
    rows = made("adagrad", epsilon=0.0)
    take(rows, [1, 2], 10.0)
    update(rows, [1], 3.0)
    rows.restart()
    assert rows.store.ids().tolist() == [1] and not len(rows.moved().ids)
    assert rows.missing(line(1)).tolist() == [1]
    take(rows, [1], 0.1)
    update(rows, [1], 4.0)
    assert read(rows, 1) == [np.float32(0.1) - np.float32(4 / 5)]


def test_a_rule_that_moves_rows_without_gradients_sends_them_too():
    for hypers, sent in (({"lazy_mode": False}, [1, 2]), ({"lazy_mode": True}, [2])):
        rows = made("adam", **hypers)
        take(rows, [1, 2, 3], 10.0)
        update(rows, [1], 1.0)
        exchange(rows, 10.0)
        take(rows, [2], 10.0)
        update(rows, [2], 1.0)
        assert list(exchange(rows, 10.0)) == sent
    rows = made("momentum", mu=0.5)
    take(rows, [1], 10.0)
    update(rows, [1], 1.0)
    exchange(rows, 9.0)
    update(rows, [], 1.0)
    assert exchange(rows, 8.5) == {1: -0.5}


def test_a_worker_without_room_says_which_table_and_what_to_do(monkeypatch):
    monkeypatch.setattr(budget, "server_bytes", lambda: 2048)
    rows = made()
    with pytest.raises(EnvironmentProblem, match=r"table 't': a worker that trains by itself \(geo\) keeps every row"):
        take(rows, range(1000), 0.0)
