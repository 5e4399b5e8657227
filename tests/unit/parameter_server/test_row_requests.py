"""Where rows are, and requests for them: order, number of messages, and ids out of range (B48)."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.arrays import Rows
from fleet_mpi.errors import FleetError, UsageError
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.parameter_server.requests import Part
from fleet_mpi.parameter_server.row_requests import RowTraffic
from fleet_mpi.parameter_server.tables.rows import RowTableDescription
from fleet_mpi.placement import Variable, place
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import protocol
from tests.unit.parameter_server.rows_job import TABLES, RowsJob, drawn_gradients, first_values, one_table, rows_of


@pytest.mark.parametrize("wrong", (50, -1, 2 ** 40))
def test_b48_an_id_out_of_range_is_refused_before_anything_is_sent(wrong):
    job = one_table({"servers": 2, "min_block_size": 60})
    client, said = job.clients[0], f"table 'table': id {wrong} at position 1 of 2 .* 0 <= id < 50"
    with pytest.raises(IndexError, match=said) as caught:
        client.pull_rows({0: np.array([3, wrong])})
    with pytest.raises(FleetError, match=said):
        client.push_pull([rows_of([3, wrong], [1.0, 1.0])])
    assert isinstance(caught.value, UsageError) and not job.network.sent


@settings(max_examples=30)
@given(servers=st.integers(1, 4), method=st.sampled_from(["RoundRobin", "HashName", "Balanced"]),
       ids=st.lists(st.lists(st.integers(0, 59), max_size=30), min_size=3, max_size=3))
def test_pulled_rows_come_in_the_callers_order(servers, method, ids):
    job, values = RowsJob(servers, method=method, min_block_size=60), first_values()
    job.fill(values)
    found = job.clients[0].pull_rows({number: np.array(one, np.int64) for number, one in enumerate(ids)})
    for number, table in enumerate(TABLES):
        np.testing.assert_array_equal(found[number], values[table.name][ids[number]].reshape(-1, table.shape[1]))


def test_rows_are_put_into_the_arrays_given_one_behind_the_other():
    job, values = RowsJob(), first_values()
    job.fill(values)
    outs = [np.empty((2, 1, 9), np.float32), np.empty((3, 9), np.float32)]
    job.clients[0].pull_rows({0: np.array([7, 4999, 7, 0, 1])}, {0: outs})
    np.testing.assert_array_equal(outs[0][:, 0], values["items"][[7, 4999]])
    np.testing.assert_array_equal(outs[1], values["items"][[7, 0, 1]])


def test_a_pull_is_one_request_to_each_server_that_has_rows_of_it():
    job = RowsJob(3)
    job.fill(first_values())
    everywhere = {number: np.arange(table.shape[0]) for number, table in enumerate(TABLES)}
    job.clients[0].pull_rows(everywhere)
    assert {key: count for key, count in job.network.sent.items() if key[2] != Channel.REPLY} == {
        (3, server, Channel.REQUEST): 1 for server in range(3)}
    before = sum(job.network.sent.values())
    job.clients[0].pull_rows({0: np.array([17, 17, 18])})
    assert sum(job.network.sent.values()) == before + 2
    job.clients[0].pull_rows({0: np.array([], np.int64)})
    assert sum(job.network.sent.values()) == before + 2


def test_long_requests_and_answers_go_in_pieces(monkeypatch):
    monkeypatch.setattr(protocol, "PIECE", 4096)
    values, gradients = first_values(), drawn_gradients(2, 5)
    whole, pieces = RowsJob(2, 2), RowsJob(2, 2, largest=1024)
    for job in (whole, pieces):
        job.fill(values)
        job.round(gradients)
    for name, array in whole.values().items():
        np.testing.assert_array_equal(array, pieces.values()[name])
    for channel in (Channel.REQUEST_BODY, Channel.REPLY_BODY):
        few, many = (sum(count for key, count in job.network.sent.items() if key[2] == channel)
                     for job in (whole, pieces))
        assert many > 20 * few > 0


@settings(max_examples=40)
@given(height=st.integers(1, 60), servers=st.integers(1, 4), method=st.sampled_from(["RoundRobin", "HashName"]),
       ids=st.lists(st.integers(0, 59), max_size=40), seed=st.integers(0, 9))
def test_the_parts_of_a_row_gradient_are_all_of_it_each_with_its_server(height, servers, method, ids, seed):
    placed = place([Variable("table", (height, 4))], servers, method, min_block_size=20)
    described = RowTableDescription("table", (height, 4), "float32", placed.of_variable("table"), recipe("sgd"))
    ids = np.array(ids, np.int64) % height
    rows = Rows(ids, np.random.default_rng(seed).normal(size=(len(ids), 4)).astype("f4"), height)
    back = np.full((height, 4), 0, np.float32)
    for server, (local, values) in enumerate(RowTraffic(described, servers).cut(rows)):
        assert len(np.unique(local)) == len(local)
        for shard, begin in described.of_server(server):
            here = (local >= begin) & (local < begin + shard.rows)
            back[local[here] - begin + shard.row_begin] = values[here]
    np.testing.assert_array_equal(back, rows.to_dense())


def test_a_row_gradient_of_another_type_is_refused():
    job = one_table()
    with pytest.raises(UsageError, match="table 'table' is float32, its row gradient float64"):
        job.clients[0].push_pull([Rows(np.array([1]), np.ones((1, 4)), 50)])


def test_requests_under_way_have_buffers_of_their_own_and_later_ones_use_them_again():
    link = one_table().clients[0].links[0]
    first, second = Part(link), Part(link)
    buffers = [part.row_buffer(nbytes) for part, nbytes in ((first, 1000), (second, 800), (first, 600))]
    assert [len(one) for one in buffers] == [1000, 800, 600]
    assert not any(np.shares_memory(one, other) for one, other in itertools.combinations(buffers, 2))
    first.give_back()
    later = Part(link)
    assert not np.shares_memory(later.row_buffer(500), buffers[1])
    assert any(np.shares_memory(later.row_buffer(900), one) for one in buffers[::2])
    assert len(later.row_buffer(5000)) == 5000


@pytest.mark.parametrize("piece", (1 << 20, 512))
def test_rows_of_many_numbers_go_through_the_same_buffers(piece, monkeypatch):
    """More, fewer and none, within messages and behind them: memory that is mistaken would show older rows."""
    monkeypatch.setattr(protocol, "PIECE", piece)
    job, expected = one_table({"servers": 2, "workers": 2, "min_block_size": 60}), np.zeros(50, np.float32)
    for step, counts in enumerate(((0, 40), (3, 50), (40, 3), (17, 0), (50, 50))):
        chosen = [np.random.default_rng([step, worker]).permutation(50)[:count] for worker, count in enumerate(counts)]
        tickets = [client.push_pull([Rows(ids, np.full((len(ids), 4), 2.0 ** step, np.float32), 50)])
                   for client, ids in zip(job.clients, chosen, strict=True)]
        for client, ticket in zip(job.clients, tickets, strict=True):
            client.collect(ticket)
        for ids in chosen:
            expected[ids] -= 0.1 * 2.0 ** step / 2
        for client, ids in zip(job.clients, chosen, strict=True):
            np.testing.assert_allclose(client.pull_rows({0: ids})[0][:, 0], expected[ids], rtol=1e-5)


def test_only_the_first_rows_have_the_time_of_a_first_step():
    """Steps whose gradients are merged may be many before the first push."""
    client, longest = one_table({"servers": 1}).clients[0], []
    client.first_step_s, client.is_first_step = 1000.0, True
    on_wait = client.transport.on_wait
    client.transport.on_wait = lambda: longest.append(client._limit_s()) or on_wait()
    for _ in range(2):
        client.pull_rows({0: np.array([3])})
    assert longest[0] > 1000 > longest[-1]
    assert client._limit_s() > 1000   # the first push
