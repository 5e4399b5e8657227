"""fleet_mpi/program/build/amp.py."""

import numpy as np
import pytest

from fleet_mpi import arrays, testing
from fleet_mpi.fluid import layers
from fleet_mpi.program.build.amp import AutoMixedPrecisionLists, decorate
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.places import CPUPlace
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.optimizers.plain import SGD, Adam, Lamb, Momentum
from fleet_mpi.program.optimizers.wrappers import GradientMergeOptimizer, RecomputeOptimizer
from tests.unit.program.building import data, from_scratch, mean, mul, parameter
from tests.unit.program.ops.checking import StandInPlace

GOOD = np.random.default_rng(0).normal(size=(6, 3, 2)).astype("float32")
BAD = np.full((3, 2), np.inf, "float32")


def train(decorated, batches, place=None):
    """(weights, loss scale) after every step."""
    with from_scratch():
        optimizer = decorated(Momentum(0.1, 0.9))
        optimizer.minimize(mean(mul(data("x", [-1, 2]), parameter("w", [1, 2]))))
        executor, found = Executor(place), []
        executor.run(default_startup_program())
        for batch in batches:
            executor.run(feed={"x": batch})
            weights, scale = (global_scope().array(name) for name in ("w", "loss_scaling_0"))
            found.append((arrays.to_host(weights).tolist(), None if scale is None else float(arrays.to_host(scale)[0])))
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


@pytest.mark.parametrize("place", (CPUPlace, StandInPlace))
def test_of_merged_steps_only_the_bad_one_is_left_out(place):
    found = train(lambda inner: decorate(GradientMergeOptimizer(inner, k_steps=2, avg=False)), [GOOD[0], BAD], place())
    assert found[1][0] == train(decorate, GOOD[:1], place())[0][0]


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


def states(executor, batch):
    """Every persistable variable after a step, on the host, and how often the step copied anything to the host."""
    copies, original = [], testing.device.asnumpy
    testing.device.asnumpy = lambda array, *rest: copies.append(array) or original(array, *rest)
    try:
        executor.run(feed={"x": batch})
    finally:
        testing.device.asnumpy = original
    return {name: arrays.to_host(global_scope().array(name)).copy() for name in global_scope().local_var_names()
            if global_scope().array(name) is not None}, len(copies)


@pytest.mark.parametrize("rule", (lambda: SGD(0.1), lambda: Momentum(0.1, 0.9), lambda: Adam(0.1), lambda: Lamb(0.1)))
@pytest.mark.parametrize("is_dynamic", (False, True))
def test_on_a_device_a_bad_step_changes_no_bit_and_nothing_is_read(rule, is_dynamic):
    with from_scratch():
        optimizer = decorate(rule(), init_loss_scaling=8.0, decr_every_n_nan_or_inf=1, decr_ratio=0.5,
                             use_dynamic_loss_scaling=is_dynamic)
        optimizer.minimize(mean(mul(data("x", [-1, 2]), parameter("w", [1, 2]))))
        executor = Executor(StandInPlace())
        executor.run(default_startup_program())
        (first, _), (good, read), (bad, read_after_bad) = (states(executor, x) for x in (GOOD[0], GOOD[1], BAD))
    assert read == read_after_bad == 0
    assert any((good[name] != first[name]).any() for name in good if name.startswith("w"))
    for name, before in good.items():
        if not name.startswith(("loss_scaling", "num_")):
            np.testing.assert_array_equal(bad[name], before, err_msg=name)
    assert bad["loss_scaling_0"].tolist() == [4.0 if is_dynamic else 8.0]


def losses(decorated, steps=25):
    """The losses of a small image classifier on a device, over the same batch."""
    rng = np.random.default_rng(3)
    feed = {"x": rng.normal(size=(8, 1, 8, 8)).astype("float32"), "y": rng.integers(0, 3, (8, 1))}
    with from_scratch():
        default_main_program().random_seed = default_startup_program().random_seed = 4
        hidden = layers.batch_norm(layers.conv2d(layers.data("x", [1, 8, 8]), 4, 3, bias_attr=False), act="relu")
        logits = layers.fc(layers.pool2d(hidden, 2, "max", 2), 3)
        loss = layers.mean(layers.softmax_with_cross_entropy(logits, layers.data("y", [1], dtype="int64")))
        decorated(Momentum(0.05, 0.9)).minimize(loss)
        executor = Executor(StandInPlace())
        executor.run(default_startup_program())
        return np.ravel([executor.run(feed=feed, fetch_list=[loss])[0] for _ in range(steps)])


def test_in_float16_the_loss_follows_that_in_float32():
    half, single = losses(decorate), losses(lambda inner: inner)
    assert single[-1] < 0.1 * single[0]
    np.testing.assert_allclose(half, single, rtol=0.1, atol=0.01)
    assert (half != single).all()
