"""Tables that travel by rows: the bits of one process, and what the original got wrong (B15, B16, B23)."""

import numpy as np
import pytest

from fleet_mpi.errors import PeerLost
from fleet_mpi.parameter_server import messages
from fleet_mpi.parameter_server.recipes import Bound, BoundNorm, Decay, recipe
from fleet_mpi.parameter_server.tables.rows import RowTableDescription
from fleet_mpi.placement import Shard
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire.protocol import Header, Kind
from tests.unit.parameter_server.rows_job import (
    RATE,
    OneProcess,
    RowsJob,
    drawn_gradients,
    first_values,
    one_table,
    rows_of,
)

RECIPES = {
    "sgd": recipe("sgd", "lr"),
    "adam": recipe("adam", "lr"),
    "lazy adam": recipe("adam", "lr", lazy_mode=True),
    "adagrad": recipe("adagrad", "lr", (Bound(-0.5, 0.5),)),
    "momentum": recipe("momentum", "lr", (BoundNorm(1.0, "group"), Decay(0.01)), mu=0.8),
    "ftrl": recipe("ftrl", "lr", (BoundNorm(0.1),)),
    "rmsprop": recipe("rmsprop", "lr", (Decay(0.01, of_sign=True),)),
    "lars": recipe("lars_momentum", "lr", (BoundNorm(2.0),)),
    "lamb": recipe("lamb", "lr"),
}
CUTS = [(1, "RoundRobin", True), (2, "RoundRobin", True), (3, "HashName", True), (4, "Balanced", False),
        (7, "RoundRobin", False)]


def push(job, *rows):
    """One round with one Rows or None per worker."""
    job.round([{"table": one} for one in rows])
    return job.values()["table"]


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("workers", (1, 3))
def test_b16_every_cut_gives_the_bits_of_one_process_with_the_same_optimizer_and_mean(name, workers):
    made, values = RECIPES[name], first_values()
    alone = OneProcess(values, made)
    steps = [drawn_gradients(workers, seed) for seed in range(3)]
    for gradients in steps:
        alone.round(gradients)
    for servers, method, slice_up in CUTS:
        job = RowsJob(servers, workers, made, method, slice_up)
        job.fill(values)
        for gradients in steps:
            job.round(gradients)
        for variable, array in job.values().items():
            np.testing.assert_array_equal(array, alone.values[variable], f"{variable} on {servers} servers, {method}")


def test_b23_the_mean_is_over_all_workers_and_not_over_those_that_have_the_row():
    after = push(one_table({"workers": 2}), rows_of([5, 6], [8.0, 8.0]), rows_of([6], [8.0]))
    np.testing.assert_allclose(after[[5, 6], 0], [-RATE * 4, -RATE * 8])


def test_b23_a_worker_without_any_rows_counts_too():
    after = push(one_table({"workers": 2}), rows_of([5], [8.0]), None)
    np.testing.assert_allclose(after[5], -RATE * 4)


def test_b15_gradients_of_a_row_that_repeats_are_summed():
    after = push(one_table({"servers": 3, "min_block_size": 60}), rows_of([49, 3, 49, 49], [1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_allclose(after[[49, 3], 0], [-RATE * 8, -RATE * 2], rtol=1e-6)


def test_rows_that_no_worker_brought_move_as_with_a_zero_gradient():
    job = one_table(made=recipe("momentum", "lr", mu=0.5))
    push(job, rows_of([5], [8.0]))
    np.testing.assert_allclose(push(job, None)[5], -RATE * (8 + 4))


def test_a_worker_that_left_is_not_in_the_mean():
    job = one_table({"workers": 2})
    push(job, rows_of([5], [8.0]), rows_of([5], [8.0]))
    job.leave(1)
    np.testing.assert_allclose(push(job, rows_of([5], [8.0]))[5], -RATE * 16)


def table_with_two_shards(made):
    shards = [Shard("table", 0, "table.block0", 0, 8, 0, 2, (2, 4), 1),
              Shard("table", 1, "table.block1", 8, 12, 2, 3, (3, 4), 0),
              Shard("table", 2, "table.block2", 20, 4, 5, 1, (1, 4), 1)]
    described = RowTableDescription("table", (6, 4), "float32", tuple(shards), made)
    return described.table(1, {"lr": np.array([RATE], np.float32)})


def test_values_and_states_of_shards_are_views_by_name():
    table = table_with_two_shards(recipe("adam", "lr"))
    assert [shard.block for shard in table.shards()] == [0, 2]
    table.param("table", 2)[...] = 7
    table.set_state("table", 0, "moment1", np.full((2, 4), 3))
    out = np.zeros(table.answer_bytes(2), np.uint8)
    table.answer(np.array([2, 0]), out)
    np.testing.assert_array_equal(out[:32].view(np.float32).reshape(2, 4), [[7] * 4, [0] * 4])
    np.testing.assert_array_equal(table.state("table", 0, "moment1"), np.full((2, 4), 3))
    np.testing.assert_array_equal(table.state("table", 2, "moment1"), np.zeros((1, 4)))
    with pytest.raises(KeyError):
        table.param("table", 1)


def test_a_number_of_the_whole_table_moves_on_once_per_update():
    table = table_with_two_shards(recipe("adam", "lr", beta1=0.5))
    table.update([rows_of([0, 2], [1.0, 1.0], 3)])
    np.testing.assert_array_equal(table.state("table", 0, "beta1_pow_acc"), np.float32([0.25]))
    table.set_state("table", 2, "beta1_pow_acc", [0.5])
    np.testing.assert_array_equal(table.state("table", 0, "beta1_pow_acc"), np.float32([0.5]))


def test_adagrad_starts_from_the_given_moment():
    table = table_with_two_shards(recipe("adagrad", "lr", initial_accumulator_value=0.25))
    np.testing.assert_array_equal(table.state("table", 0, "moment"), np.full((2, 4), 0.25, np.float32))


def asked_with(job, counts, ids, kind=Kind.PULL_ROWS):
    """What a server makes of a request for rows with this content."""
    prefix = np.zeros(8, np.int64)
    prefix[:len(counts)] = counts
    sent = messages.message(Header(kind, 0), messages.joined([prefix, np.array(ids, np.int64)]))
    job.clients[0].transport.post_send(0, Channel.REQUEST, sent)
    for _ in range(3):
        job.servers[0].advance()


@pytest.mark.parametrize("counts, ids, said", (
    ([-1], [], "announced -1 rows"), ([51], list(range(51)), "51 rows to a server that keeps 50"),
    ([1], [50], "local row 50, this server keeps 50"), ([1], [-1], "local row -1"),
    ([20], [1], "expected 256 . 0: do both run the same program")))
def test_damaged_requests_for_rows_are_refused(counts, ids, said):
    with pytest.raises(PeerLost, match=said):
        asked_with(one_table({"servers": 1}), counts, ids)


def test_a_push_with_a_row_outside_the_table_is_refused():
    table = table_with_two_shards(recipe("sgd", "lr"))
    body = messages.joined([np.array([3]), np.ones((1, 4), np.float32)])
    with pytest.raises(PeerLost, match="local row 3, this server keeps 3"):
        table.read(body, 1)
