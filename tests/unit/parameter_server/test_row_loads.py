"""Rows of a table that grows, read and written whole: in parts, for any number of servers; and damaged requests."""

import numpy as np
import pytest

from fleet_mpi.arrays import aligned
from fleet_mpi.errors import FleetError, PeerLost, UsageError
from fleet_mpi.parameter_server import messages, row_loads
from fleet_mpi.parameter_server.description import StateKey, param
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.parameter_server.state import ServerState
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire.protocol import Header, Kind
from tests.unit.parameter_server.growing_job import HEIGHT, WIDTH, GrowingJob, drawn, first_rows

ADAM = recipe("adam", "lr", states=(("moment1", "m1"),))
KEYS, MOMENTS = StateKey("state", "t", "@KEYS"), StateKey("state", "t", "moment1")
EVERYTHING = [param("t"), KEYS, MOMENTS, StateKey("state", "t", "moment2"), StateKey("state", "t", "beta1_pow_acc"),
              StateKey("state", "t", "beta2_pow_acc")]


def trained(servers, ids, steps=3):
    """A job with rows for some of these ids."""
    job = GrowingJob(servers, 1, ADAM)
    for step in range(steps):
        job.round([drawn(0, step, ids)])
    return job


def fetched(job):
    """All columns, whole."""
    return dict(zip(EVERYTHING, ServerState(job.clients[0]).fetch_all(EVERYTHING)))


def stored(job, values):
    """Let the servers have these columns."""
    with ServerState(job.clients[0]).storing() as store:
        for key, array in values.items():
            store(key, array)


def equal(some, others):
    """Whether all columns are."""
    return all(some[key].tobytes() == others[key].tobytes() for key in EVERYTHING)


@pytest.mark.parametrize("batch_bytes", (1, 2000, 1 << 26))
def test_rows_go_from_any_number_of_servers_to_any_other_in_parts(monkeypatch, batch_bytes):
    monkeypatch.setattr(row_loads, "BATCH_BYTES", batch_bytes)
    whole = fetched(trained(1, np.arange(300) * 10 ** 16))
    assert (np.diff(whole[KEYS]) > 0).all()
    for servers in (1, 2, 4):
        assert equal(whole, fetched(trained(servers, np.arange(300) * 10 ** 16)))
        job = trained(servers, np.arange(150, 400) * 10 ** 16)
        stored(job, whole)
        assert equal(whole, fetched(job)) and ServerState(job.clients[0]).count("t") == len(whole[KEYS])


def test_values_alone_leave_rows_their_states():
    job = trained(2, np.arange(40))
    before = fetched(job)
    kept, new = before[KEYS][:5], np.array([10 ** 17, -9])
    rows = first_rows(np.concatenate([kept, new]))
    stored(job, {param("t"): rows, KEYS: np.concatenate([kept, new])})
    after = fetched(job)
    assert after[KEYS].tolist() == [-9, *kept.tolist(), 10 ** 17]
    np.testing.assert_array_equal(after[param("t")], rows[[6, 0, 1, 2, 3, 4, 5]])
    np.testing.assert_array_equal(after[MOMENTS][1:-1], before[MOMENTS][:5])
    assert not after[MOMENTS][[0, -1]].any() and after[EVERYTHING[4]] == before[EVERYTHING[4]]


def test_a_table_becomes_empty_where_none_are_stored():
    job = trained(3, np.arange(40))
    stored(job, {param("t"): first_rows([]), KEYS: np.zeros(0, np.int64)})
    assert job.counts == [0, 0, 0] and fetched(job)[param("t")].shape == (0, WIDTH)


def test_copies_are_of_one_moment():
    job = trained(2, np.arange(40))
    state, before = ServerState(job.clients[0]), fetched(job)
    with state.copied(EVERYTHING):
        job.round([drawn(0, 1, np.arange(HEIGHT))])
        assert equal(before, dict(zip(EVERYTHING, state.fetch_all(EVERYTHING))))
    assert not equal(before, fetched(job))


@pytest.mark.parametrize("columns, sentence", (
    ({param("t"): (2, WIDTH)}, "table 't' has rows for any id: its values and t@KEYS are stored together"),
    ({param("t"): (2, WIDTH), KEYS: (2,), MOMENTS: (2, WIDTH)}, "with all states of its rule or none"),
    ({param("t"): (2, WIDTH), KEYS: (3,)}, "expected the same number"),
    ({param("t"): (2, WIDTH), KEYS: (2,)}, "an id comes twice in t@KEYS"),
    ({param("t"): (2, WIDTH + 1), KEYS: (2,)}, r"param t: the servers keep float32 \[-1, 5\], got float32 \[2, 6\]"),
))
def test_columns_that_do_not_belong_together_are_refused(columns, sentence):
    job = trained(1, np.arange(40))
    before = fetched(job)
    with pytest.raises(UsageError, match=sentence):
        stored(job, {key: np.zeros(shape, np.int64 if key == KEYS else np.float32) for key, shape in columns.items()})
    assert equal(before, fetched(job))


# ------------------------------------------------------------------ damaged messages


def store(described, body=None, number=1):
    """A STORE of a worker's, as bytes."""
    job = GrowingJob(1, 1, ADAM)
    body = sum(aligned(int(np.prod(shape)) * np.dtype(kind).itemsize) for _, kind, shape in described) if (
        body is None) else body
    transport = job.clients[0].transport
    transport.post_send(0, Channel.REQUEST, messages.message(
        Header(Kind.STORE, 0, 0, number=number, body=body), messages.encode(described)))
    transport.post_send(0, Channel.REQUEST_BODY, np.zeros(body, np.uint8))
    for _ in range(5):
        job.pump()


IDS, VALUES = [["rows", "t", "@KEYS"], "<i8", [1]], [["rows", "t", "@VALUES"], "<f4", [1, WIDTH]]


@pytest.mark.parametrize("described, body, kind, sentence", (
    ([IDS, VALUES], 64, PeerLost, "sent rows in 64 bytes, described 128"),
    ([IDS, [["rows", "u", "@VALUES"], "<f4", [1, WIDTH]]], None, PeerLost, "sent rows in"),
    ([IDS, [["param", "t", 0], "<f4", [1, WIDTH]]], None, PeerLost, "sent rows in"),
    ([IDS], None, PeerLost, "rows came as"),
    ([VALUES], None, PeerLost, "rows came as"),
    ([[["rows", "t", "@KEYS"], "<i4", [1]], VALUES], None, PeerLost, "rows came as"),
    ([IDS, [["rows", "t", "@VALUES"], "<f8", [1, WIDTH]]], None, PeerLost, "rows came as"),
    ([IDS, [["rows", "t", "@VALUES"], "<f4", [1, WIDTH + 1]]], None, FleetError, "values"),
    ([IDS, [["rows", "t", "@VALUES"], "<f4", [2, WIDTH]]], None, FleetError, "values"),
    ([IDS, VALUES, [["rows", "t", "speed"], "<f4", [1, WIDTH]]], None, FleetError, "speed"),
    ([[["rows", "w", "@KEYS"], "<i8", [1]]], None, UsageError, "keeps 'w' by blocks, not by id"),
    ([[["rows", "t", "@KEYS"], "<i8", [2 ** 47]], VALUES], 0, PeerLost, "sent rows in 0 bytes"),
))
def test_a_damaged_request_is_refused(described, body, kind, sentence):
    with pytest.raises(kind, match=sentence):
        store(described, body)


@pytest.mark.parametrize("key, sentence", (
    (["rows", "t", "speed"], "keeps no state 'speed'"), (["rows", "w", "@KEYS"], "by blocks, not by id"),
    (["param", "t", 0], r"keeps no \['param', 't', 0\]"), (["rows", "t", "@SCORES"], "SCORES")))
def test_what_is_not_kept_is_not_fetched(key, sentence):
    job = GrowingJob(1, 1, ADAM)
    job.clients[0].transport.post_send(0, Channel.REQUEST, messages.message(
        Header(Kind.FETCH, 0), messages.encode([key])))
    with pytest.raises(UsageError, match=sentence):
        for _ in range(5):
            job.pump()
