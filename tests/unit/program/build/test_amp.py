"""fleet_mpi/program/build/amp.py."""

import numpy as np

from fleet_mpi.program.build.amp import AutoMixedPrecisionLists, decorate
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_startup_program
from fleet_mpi.program.optimizers.plain import Momentum
from fleet_mpi.program.optimizers.wrappers import GradientMergeOptimizer, RecomputeOptimizer
from tests.unit.program.building import data, from_scratch, mean, mul, parameter

GOOD = np.random.default_rng(0).normal(size=(6, 3, 2)).astype("float32")
BAD = np.full((3, 2), np.inf, "float32")


def train(decorated, batches):
    """(weights, loss scale) after every step."""
    with from_scratch():
        optimizer = decorated(Momentum(0.1, 0.9))
        optimizer.minimize(mean(mul(data("x", [-1, 2]), parameter("w", [1, 2]))))
        executor, found = Executor(), []
        executor.run(default_startup_program())
        for batch in batches:
            executor.run(feed={"x": batch})
            scale = global_scope().array("loss_scaling_0")
            found.append((global_scope().array("w").tolist(), None if scale is None else float(scale[0])))
    return found


def test_a_scaled_loss_trains_with_the_same_bits():
    plainly = train(lambda optimizer: optimizer, GOOD)
    scaled = train(decorate, GOOD)
    assert [weights for weights, _ in scaled] == [weights for weights, _ in plainly]
    assert scaled[-1][1] == 2 ** 15


def test_a_step_that_is_not_finite_changes_nothing():
    found = train(decorate, [GOOD[0], BAD, GOOD[1]])
    assert found[1][0] == found[0][0]
    assert found[2][0] == train(decorate, GOOD[:2])[1][0]


def test_the_scale_falls_after_bad_steps_in_a_row_and_not_below_one():
    found = train(lambda inner: decorate(inner, init_loss_scaling=4.0, decr_ratio=0.25),
                  [BAD, GOOD[0], BAD, BAD, BAD, BAD])
    assert [scale for _, scale in found] == [4, 4, 4, 1, 1, 1]


def test_the_scale_grows_after_good_steps_in_a_row():
    found = train(lambda inner: decorate(inner, init_loss_scaling=4.0, incr_every_n_steps=2),
                  [GOOD[0], GOOD[1], GOOD[2], BAD, GOOD[3], GOOD[4]])
    assert [scale for _, scale in found] == [4, 8, 8, 8, 8, 16]


def test_a_fixed_scale_stays_but_bad_steps_are_skipped():
    found = train(lambda inner: decorate(inner, init_loss_scaling=8.0, use_dynamic_loss_scaling=False), [BAD] * 3)
    assert found == [([1.0, 2.0], 8.0)] * 3


def test_of_merged_steps_only_the_bad_one_is_left_out():
    found = train(lambda inner: decorate(GradientMergeOptimizer(inner, k_steps=2, avg=False)), [GOOD[0], BAD])
    assert found[1][0] == train(decorate, GOOD[:1])[0][0]


def test_scale_and_scaled_loss_can_be_fetched():
    optimizer = decorate(RecomputeOptimizer(Momentum(0.1, 0.9)), AutoMixedPrecisionLists(custom_black_list={"mean"}),
                         init_loss_scaling=8.0)
    loss = mean(mul(data("x", [-1, 2]), parameter("w", [1, 2])))
    optimizer.inner_optimizer._set_checkpoints([])
    optimizer.minimize(loss)
    optimizer.amp_init(None)
    executor = Executor()
    executor.run(default_startup_program())
    fetches = [loss, optimizer.get_scaled_loss(), optimizer.get_loss_scaling()]
    plain, scaled, scale = executor.run(feed={"x": GOOD[0]}, fetch_list=fetches)
    assert scale == 8.0 and scaled == plain * 8
