"""A table that grows beside its twin of fixed height: the same bits; and what a damaged message leads to."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.errors import PeerLost, UsageError
from fleet_mpi.kernels.reference import partitions
from fleet_mpi.parameter_server import messages
from fleet_mpi.parameter_server.recipes import Bound, BoundNorm, Decay, recipe
from fleet_mpi.parameter_server.tables.growing.description import GrowingRoute, refuse_recipe
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.update_rules import RULES
from fleet_mpi.wire.protocol import Header, Kind
from tests.unit.parameter_server.growing_job import HEIGHT, RATE, SGD, WIDTH, GrowingJob, drawn, first_rows

RECIPES = {
    "sgd": SGD,
    "momentum": recipe("momentum", "lr", mu=0.8, use_nesterov=True),
    "adagrad": recipe("adagrad", "lr", (Bound(-0.5, 0.4),), initial_accumulator_value=0.1),
    "adam": recipe("adam", "lr", beta1=0.8),
    "lazy adam": recipe("adam", "lr", lazy_mode=True),
    "adamw": recipe("adamw", "lr", coeff=0.1, lazy_mode=True),
    "adamw without decay": recipe("adamw", "lr", coeff=0.0),
    "ftrl": recipe("ftrl", "lr", l1=0.01, l2=0.02),
}
FAR = [-2 ** 63, 2 ** 63 - 1, 10 ** 18, -1, 0, 1]
ALL = np.arange(HEIGHT)


def trained(job, workers, dtype="float32", steps=5):
    """Some steps; returns the job."""
    for step in range(steps):
        job.round([drawn(worker, step, ALL[:400], dtype) for worker in range(workers)])
    return job


def columns(job, name):
    """{id: the bytes of its row} of a column, over all servers."""
    found = {}
    for server in job.servers:
        one = server.table_of("t").columns
        found |= {key: row.tobytes() for key, row in zip(one.get("@KEYS").tolist(), one.get(name).copy())}
    return found


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("name", RECIPES)
def test_a_twin_of_fixed_height_has_the_same_bits_for_any_number_of_servers(name, dtype):
    for workers in (1, 3):
        fixed = trained(GrowingJob(1, workers, RECIPES[name], HEIGHT, dtype=dtype), workers, dtype)
        table = fixed.servers[0].table_of("t")
        for servers in (1, 2, 3, 4):
            job = trained(GrowingJob(servers, workers, RECIPES[name], dtype=dtype), workers, dtype)
            assert job.digest(ALL) == fixed.digest(ALL), (servers, workers)
            assert 0 < sum(job.counts) < 400
            for state in RULES[RECIPES[name].rule].states:
                if state.like_param:
                    for key, row in columns(job, state.name).items():
                        assert row == table.states[state.name][key].tobytes(), state.name
                else:
                    assert all(server.table_of("t").columns.get(state.name) == table.states[state.name]
                               for server in job.servers)


def test_b23_the_mean_is_over_all_workers_and_not_over_those_that_have_the_row():
    job = GrowingJob(2, 4, SGD)
    before, nothing = job.pull([7]).copy(), ([], np.empty((0, WIDTH), "float32"))
    job.round([([7], np.ones((1, WIDTH), "float32")), nothing, nothing, nothing])
    np.testing.assert_array_equal(job.pull([7]), before - np.float32(RATE) * np.float32(0.25))


def test_rows_of_one_moment_each_are_those_of_the_formula():
    for servers in (1, 3):
        job = GrowingJob(servers, 1, recipe("adagrad_rowwise", "lr"))
        ids, grads = [5, 10 ** 18], np.arange(2 * WIDTH, dtype=np.float32).reshape(2, WIDTH)
        job.round([(ids, grads)])
        moment = ((grads.astype(float) ** 2).sum(1) / WIDTH).astype(np.float32)[:, None]
        np.testing.assert_allclose(job.pull(ids), first_rows(ids) - np.float32(RATE) * grads / (np.sqrt(moment) + 1e-6),
                                   rtol=1e-6)


def test_any_id_is_a_row_and_a_pull_leaves_no_trace():
    for servers in (1, 2, 4):
        job = GrowingJob(servers, 2)
        asked = FAR + FAR[::-1]
        assert job.pull(asked).tobytes() == first_rows(asked).tobytes() and sum(job.counts) == 0
        ones = np.ones((len(FAR), WIDTH), np.float32)
        job.round([(FAR, ones), (FAR[:2] * 3, ones)])
        assert sum(job.counts) == len(FAR)
        moved = first_rows(FAR) - np.float32(RATE) * np.float32([[2], [2], [.5], [.5], [.5], [.5]])
        np.testing.assert_array_equal(job.pull(FAR), moved)
        job.round([None, ([], ones[:0])])
        assert sum(job.counts) == len(FAR) and job.pull([]).shape == (0, WIDTH)


def test_the_order_of_requests_makes_no_difference():
    first, second = GrowingJob(2, 1), GrowingJob(2, 1)
    second.pull(ALL)
    for job, order in ((first, 1), (second, -1)):
        for _ in range(2):
            job.round([(ALL[::order], np.ones((HEIGHT, WIDTH), np.float32))])
    assert first.digest(ALL) == second.digest(ALL)


def test_long_messages_are_cut():
    short, cut = (GrowingJob(2, 2, largest=largest) for largest in (None, 4096))
    for job in (short, cut):
        ids = np.arange(9000) * 10 ** 14
        job.round([(ids, np.full((9000, WIDTH), worker + 1, np.float32)) for worker in range(2)])
    assert short.digest(ids) == cut.digest(ids) and sum(cut.counts) == 9000


def test_a_step_is_one_request_and_one_reply_for_each_server():
    job = GrowingJob(3, 1)
    for _ in range(2):
        before = dict(job.network.sent)
        job.round([(FAR, np.ones((len(FAR), WIDTH), np.float32))])
        sent = {key: count - before.get(key, 0) for key, count in job.network.sent.items()}
        assert {key: count for key, count in sent.items() if count} == {
            **{(3, server, Channel.REQUEST): 1 for server in range(3)},
            **{(server, 3, Channel.REPLY): 1 for server in range(3)}}


def test_a_job_with_norms_updates_it_too():
    plain, with_norms = GrowingJob(2, 2), GrowingJob(2, 2, recipe_of_dense=recipe("sgd", "lr", (BoundNorm(1.0),)))
    for job in (plain, with_norms):
        trained(job, 2, steps=3)
    assert plain.digest(ALL) == with_norms.digest(ALL)


@settings(max_examples=60, deadline=None)
@given(ids=st.lists(st.integers(-2 ** 63, 2 ** 63 - 1) | st.integers(-3, 9), max_size=40), servers=st.integers(1, 9))
def test_the_route_has_every_id_once_at_the_server_of_its_partition(ids, servers):
    ids = np.array(ids, np.int64)
    local, order, counts = GrowingRoute(servers).split(ids)
    order = np.arange(len(ids)) if order is None else order
    assert sorted(order.tolist()) == list(range(len(ids))) and local.tolist() == ids[order].tolist()
    owners = np.repeat(np.arange(servers), counts)
    assert owners.tolist() == (partitions.partitions_of(local) * servers >> partitions.BITS).tolist()


def test_more_servers_than_partitions_are_refused():
    with pytest.raises(UsageError, match="at most 1024 servers, this job has 1025"):
        GrowingRoute(1025)


@pytest.mark.parametrize("made, sentence", (
    (recipe("sgd", steps=(Decay(0.1),)), "table 't': l1 and l2 concern every row"),
    (recipe("sgd", steps=(BoundNorm(0.1),)), "table 't': clip_norm takes the norm of a whole table"),
    (recipe("lamb"), "table 't': a growing table cannot be updated by 'lamb'"),
    (recipe("adamw"), "table 't': update rule 'adamw' with coeff=0.01 would decay rows"),
    (recipe("momentum", regularization_coeff=0.1), "table 't': update rule 'momentum' with regularization_coeff=0.1"),
    (recipe("rmsprop"), "table 't': a growing table cannot be updated by 'rmsprop'"),
))
def test_what_rows_that_are_not_there_would_take_part_in_is_refused(made, sentence):
    with pytest.raises(UsageError, match=sentence):
        refuse_recipe(made, "table 't'")


# ------------------------------------------------------------------ damaged messages


def send(job, kind, inline, body=0):
    """A worker's request, as bytes; returns once the servers have looked at it."""
    header = Header(kind, 0, 1, 1, body=body)
    job.clients[0].transport.post_send(0, Channel.REQUEST, messages.message(header, inline))
    for _ in range(5):
        job.pump()


@pytest.mark.parametrize("kind, before", ((Kind.PUSH, [0.0]), (Kind.PULL_ROWS, [])))
@pytest.mark.parametrize("count, sentence", (
    (-1, "announced -1 rows"), (-2 ** 63, "announced"), (2 ** 31 + 1, "a request for 2147483649 rows"),
    (2 ** 62, "a request for"), (3, "expected"), (2 ** 31, "expected")))
def test_a_count_that_cannot_be_is_refused(kind, before, count, sentence):
    job = GrowingJob(1, 1)
    prefix = np.zeros(8, np.int64)
    prefix[len(before)] = count
    with pytest.raises(PeerLost, match=sentence):
        send(job, kind, prefix.view(np.uint8))
    assert job.counts == [0]
