"""Local SGD: averaging by the formula, to the bit, at the steps of the schedule."""

import numpy as np
import pytest

from fleet_mpi import update_rules
from fleet_mpi.collective.local_sgd import is_due, next_every
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.embedding import embedding
from fleet_mpi.program.layers.math import square_error_cost
from fleet_mpi.program.layers.reduction import mean
from fleet_mpi.program.optimizers.plain import SGD, Momentum
from tests.exact.collective_networks import batches, line
from tests.exact.collective_workers import Replay, build, in_rank_order, same, strategy, train

RATE = np.array([0.1], "float32")


def averaged(snapshot, values):
    """Snapshot minus the mean way of the workers since then."""
    share = np.float32(1 / len(values))
    return {name: old - in_rank_order([old - one[name] for one in values]) * share for name, old in snapshot.items()}


def replay(first, feeds, due_at, momentum=None):
    """Every worker's parameters after the steps; averaged after those of ``due_at``."""
    gradients, workers = Replay(line), len(feeds[0])
    values = [{name: one.copy() for name, one in first.items()} for _ in range(workers)]
    velocity = [{name: np.zeros_like(one) for name, one in first.items()} for _ in range(workers)]
    snapshot, losses = first, []
    for step, feed in enumerate(feeds, 1):
        losses.append([])
        for worker, mine in enumerate(values):
            loss, grads = gradients(mine, feed[worker])
            losses[-1].append(loss)
            for name, grad in grads.items():
                if momentum is None:
                    update_rules.sgd(mine[name], grad, RATE)
                else:
                    update_rules.momentum(mine[name], grad, RATE, velocity[worker][name], momentum)
        if step in due_at:
            snapshot = averaged(snapshot, values)
            values = [{name: one.copy() for name, one in snapshot.items()} for _ in values]
    return values, losses


@pytest.mark.parametrize("momentum", (None, 0.9), ids=("sgd", "momentum"))
@pytest.mark.parametrize("workers, every, begin, due_at", ((2, 3, 2, {1, 2, 5, 8}), (4, 1, 1, set(range(1, 10)))))
def test_workers_average_the_way_they_went_at_the_steps_of_the_schedule(workers, every, begin, due_at, momentum):
    optimizer = SGD(0.1) if momentum is None else Momentum(0.1, momentum)
    job = build(line, optimizer, strategy(localsgd=True, localsgd_configs={"k_steps": every, "begin_step": begin}),
                workers)
    feeds = batches(9, workers)
    found, networks = train(job, feeds)
    expected, _ = replay(found[0].first, feeds, due_at, momentum)
    assert all(same(one.values(job), theirs) for one, theirs in zip(found, expected))
    assert same(expected[0], expected[1]) == (9 in due_at)


def test_between_averagings_nothing_is_sent():
    sent = []
    for steps in (5, 6, 7):
        job = build(line, SGD(0.1), strategy(localsgd=True, localsgd_configs={"k_steps": 2, "begin_step": 1}), 2)
        sent.append(sum(train(job, batches(steps, 2))[1][0].sent.values()))
    assert sent[0] == sent[1] < sent[2]


def test_adaptive_local_sgd_follows_the_loss_and_the_rate():
    chosen = strategy(adaptive_localsgd=True, adaptive_localsgd_configs={"init_k_steps": 9, "begin_step": 1})
    job = build(line, SGD(0.1), chosen, 2)
    feeds = batches(14, 2)
    found, _ = train(job, feeds, fetches=["@LOCAL_SGD@Every", "@LOCAL_SGD@Last"])
    told = [(int(every[0]), int(last[0])) for every, last in found[0].fetched]
    expected = expected_schedule(found[0].first, feeds)
    assert told == expected
    assert {every for every, _ in told} != {9}, "the schedule never changed: the test shows nothing"
    assert [one.fetched for one in found][0] == [one.fetched for one in found][1]


def expected_schedule(first, feeds):
    """[(every, last)] after each step, by the formula."""
    every, last, due_at, told = 9, 1, set(), []
    for step in range(1, len(feeds) + 1):
        if step <= 1 or step - last == every:
            due_at.add(step)
            last = step
        losses = replay(first, feeds[:step], due_at)[1]
        means = [np.float32(np.float32(a.item()) + np.float32(b.item())) / 2 for a, b in losses]
        if step > 1 and step in due_at:
            every = int(min(16, max(1, np.ceil(np.sqrt(np.float64(means[-1]) / np.float64(means[0]) * 9)))))
        told.append((every, last))
    return told


def rows():
    """A table whose gradient is rows."""
    table = embedding(data("ids", [1], dtype="int64"), [10, 3], is_sparse=True)
    return mean(square_error_cost(fc(table, 1), data("y", [1])))


def test_tables_whose_gradients_are_rows_are_averaged_whole():
    job = build(rows, SGD(0.1), strategy(localsgd=True), 2)
    feeds = [[{"ids": np.array([[worker * 4 + step], [2]]), "y": np.ones((2, 1), "float32")} for worker in range(2)]
             for step in range(2)]
    found, _ = train(job, feeds)
    assert same(found[0].values(job), found[1].values(job))
    table = "embedding_0.w_0"
    moved = (found[0].values(job)[table] != found[0].first[table]).any(1)
    assert np.flatnonzero(moved).tolist() == [0, 1, 2, 4, 5]


@pytest.mark.parametrize("step, last, due", ((1, 3, True), (3, 3, True), (4, 3, False), (5, 3, True), (6, 5, False)))
def test_up_to_the_first_step_of_the_schedule_all_are_due(step, last, due):
    assert is_due(step, last, every=2, begin=3) == due


@pytest.mark.parametrize("loss, rate, every", ((4.0, 0.1, 2), (1.0, 0.1, 1), (4.0, 0.025, 4), (4e9, 0.1, 16),
                                               (np.nan, 0.1, 1), (np.inf, 0.1, 1), (4.0, 0.0, 1), (-1.0, 0.1, 1)))
def test_steps_between_averagings_stay_between_1_and_16(loss, rate, every):
    assert next_every(4, 0.1, rate, 4.0, loss) == every
