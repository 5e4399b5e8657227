"""Batch norm over all workers; and strategies whose updates need the mean gradient, not a worker's own."""

import numpy as np
import pytest

from fleet_mpi import arrays, update_rules
from fleet_mpi.collective.batch_statistics import added, joined
from fleet_mpi.collective.group import Group
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.places import CPUPlace
from fleet_mpi.program.optimizers.plain import SGD, Adam, Momentum
from fleet_mpi.testing import device
from tests.exact.collective_networks import batches, line, normed, wide
from tests.exact.collective_workers import Replay, Worker, build, in_rank_order, same, strategy, train, work

RATE = np.array([0.1], "float32")


def mean_gradients(values, feed):
    """{parameter: the workers' gradients, each of a loss scaled down, added up in rank order}."""
    gradients = Replay(line, len(feed))
    found = [gradients(values, one)[1] for one in feed]
    return {name: in_rank_order([one[name] for one in found]) for name in values}


def replay(first, feeds, update):
    """Parameters after ``update(name, value, mean gradient)`` at every step."""
    values = {name: one.copy() for name, one in first.items()}
    for feed in feeds:
        for name, grad in mean_gradients(values, feed).items():
            update(name, values[name], grad)
    return values


@pytest.mark.parametrize("workers", (2, 4))
def test_lars_takes_its_norms_of_the_mean_gradient(workers):
    chosen = strategy(lars=True, lars_configs={"lars_coeff": 0.5, "lars_weight_decay": 0.01})
    job, feeds = build(line, Momentum(0.1, 0.9), chosen, workers), batches(4, workers)
    found, _ = train(job, feeds)
    rule, velocity = update_rules.RULES["lars_momentum"], {name: np.zeros_like(one)
                                                           for name, one in found[0].first.items()}

    def update(name, value, grad):
        rule.run(value.reshape(-1), grad.reshape(-1), RATE, velocity[name].reshape(-1), mu=0.9, lars_coeff=0.5,
                 lars_weight_decay=0.01, epsilon=0.0)
    expected = replay(found[0].first, feeds, update)
    assert all(same(one.values(job), expected) for one in found)


@pytest.mark.parametrize("workers", (2, 4))
def test_lamb_takes_its_norms_of_the_mean_gradient(workers):
    job, feeds = build(line, Adam(0.1), strategy(lamb=True), workers), batches(4, workers)
    found, _ = train(job, feeds)
    rule, states = update_rules.RULES["lamb"], {}

    def update(name, value, grad):
        held = states.setdefault(name, [np.zeros(value.size, "float32") for _ in range(2)]
                                 + [np.full(1, beta, "float32") for beta in (0.9, 0.999)])
        rule.run(value.reshape(-1), grad.reshape(-1), RATE, *held, weight_decay=0.01, beta1=0.9, beta2=0.999,
                 epsilon=1e-8)
    expected = replay(found[0].first, feeds, update)
    assert all(same(one.values(job), expected) for one in found)


def test_workers_skip_a_step_together_where_one_of_them_overflows():
    chosen = strategy(amp=True, amp_configs={"init_loss_scaling": 1024.0, "decr_every_n_nan_or_inf": 1,
                                             "incr_every_n_steps": 2, "decr_ratio": 0.5})
    job, feeds = build(line, SGD(0.1), chosen, 2), batches(5, 2)
    feeds[2][1]["y"][...] = 3e38  # its square is infinite, on worker 1 only
    scale = next(op.input("Scale")[0] for op in job.main.global_block().ops if op.type == "check_finite_and_unscale")
    found, _ = train(job, feeds, fetches=[scale, "fc_0.w_0"])
    scales, weights = (np.array([[one[i] for one in worker.fetched] for worker in found]) for i in range(2))
    assert scales[0].reshape(-1).tolist() == [1024, 2048, 1024, 1024, 2048] and np.array_equal(*scales)
    assert np.array_equal(*weights) and np.isfinite(weights).all()
    changes = [not np.array_equal(*weights[0, step:step + 2]) for step in range(4)]
    assert changes == [True, False, True, True]


def test_recomputing_changes_no_bit():
    found = []
    for chosen in (strategy(), strategy(recompute=True, recompute_configs={"checkpoints": ["fc_0.tmp_2"]})):
        job = build(line, SGD(0.1), chosen, 2)
        found.append(train(job, batches(3, 2))[0][1].values(job))
    assert same(*found)


def test_recomputing_a_batch_norm_of_all_workers_changes_no_bit():
    found = []
    for more in ({}, dict(recompute=True, recompute_configs={"checkpoints": ["batch_norm_0.tmp_2"]})):
        job = build(normed, SGD(0.1), strategy(sync_batch_norm=True, **more), 2)
        workers, _ = train(job, batches(3, 2))
        found.append({**workers[1].values(job), "mean": workers[1].scope.array("batch_norm_0.w_1")})
    assert same(*found)
    assert sum(op.type == "sync_batch_norm" for op in job.main.global_block().ops) == 2


def whole_batch(feed):
    """The workers' batches as one."""
    return {name: np.concatenate([one[name] for one in feed]) for name in feed[0]}


@pytest.mark.parametrize("workers", (2, 3))
def test_batch_norm_over_all_workers_is_that_of_one_process_with_all_batches(workers):
    feeds = batches(6, workers)
    job = build(normed, SGD(0.1), strategy(sync_batch_norm=True), workers)
    found, _ = train(job, feeds)
    assert all(same(one.values(job), found[0].values(job)) for one in found)
    alone = build(normed, SGD(0.1), strategy(), 1)
    expected, _ = train(alone, [[whole_batch(feed)] for feed in feeds])
    for name, value in found[0].values(job).items():
        np.testing.assert_allclose(value, expected[0].values(alone)[name], rtol=2e-4, atol=2e-5)
    for name in ("batch_norm_0.w_1", "batch_norm_0.w_2"):
        statistics = [one.scope.array(name) for one in found]
        assert all(np.array_equal(one, statistics[0]) for one in statistics)
        np.testing.assert_allclose(statistics[0], expected[0].scope.array(name), rtol=1e-4)
    apart, _ = train(build(normed, SGD(0.1), strategy(), workers), feeds)
    assert not np.array_equal(apart[0].scope.array("batch_norm_0.w_1"), apart[1].scope.array("batch_norm_0.w_1"))


def test_a_program_for_tests_normalises_by_the_running_statistics_alone():
    job, alone = (build(normed, SGD(0.1), strategy(sync_batch_norm=workers > 1), workers) for workers in (2, 1))
    (worker, _), _ = train(job, batches(2, 2))
    (single,), _ = train(alone, batches(1, 1))
    for var in alone.main.list_vars():
        if var.persistable and single.scope.array(var.name) is not None:
            single.scope.var(var.name).get_tensor().set(worker.scope.array(var.name))
    # Nobody answers worker 0 any more: a message would be one too many.
    found, expected = (Executor().run(one.main.clone(for_test=True), feed=batches(1, 1)[0][0],
                                      fetch_list=[one.loss.name],
                                      scope=who.scope) for one, who in ((job, worker), (alone, single)))
    assert np.array_equal(found, expected)


def test_statistics_of_unequal_batches_count_by_their_length():
    rng = np.random.default_rng(0)
    parts = [rng.normal(3, 2, (rows, 4)).astype("float32") for rows in (2, 7, 3)]
    mean, variance, count = joined([(one.mean(0), one.var(0), np.array([len(one)])) for one in parts])
    together = np.concatenate(parts).astype("float64")
    assert count == 12
    np.testing.assert_allclose(mean, together.mean(0), rtol=1e-6)
    np.testing.assert_allclose(variance, together.var(0), rtol=1e-6)


def test_sums_are_in_worker_order():
    parts = [np.array([one], "float32") for one in (1e8, 1.0, -1e8)]
    assert added([[one] for one in parts])[0][0] == in_rank_order(parts)[0]


class Device:
    """A place whose arrays are strict stand-ins for a GPU's."""

    def array_module(self):
        return device


@pytest.mark.parametrize("network, switches", (
    (normed, dict(sync_batch_norm=True)),
    (wide, dict(dgc=True, dgc_configs={"rampup_begin_step": 1})),
    (line, dict(fp16_allreduce=True)),
    (line, dict(gradient_merge=True, gradient_merge_configs={"k_steps": 2})),
    (line, dict(adaptive_localsgd=True, adaptive_localsgd_configs={"init_k_steps": 2}))),
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "")
def test_on_a_device_nothing_passes_through_the_host_unasked(network, switches):
    job, found = build(network, Momentum(0.1, 0.9), strategy(**switches), 2), []
    for place in (CPUPlace(), Device()):
        worker = Worker()
        work(worker, job, Group(0, [], 1), [step[0] for step in batches(3, 1)], place=place)
        found.append({name: arrays.to_host(one) for name, one in worker.values(job).items()})
    for name, value in found[0].items():
        np.testing.assert_allclose(found[1][name], value, rtol=1e-4, atol=1e-6)
