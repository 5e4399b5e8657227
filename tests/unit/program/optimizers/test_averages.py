"""fleet_mpi/program/optimizers/averages.py."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.schedules import autoincreased_step_counter
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.optimizers.averages import ExponentialMovingAverage, ModelAverage
from fleet_mpi.program.optimizers.plain import SGD
from tests.unit.program.building import data, mean, mul, parameter

BATCHES = np.random.default_rng(0).normal(size=(7, 3, 2)).astype("float32")


def prepare(make):
    """A trained line whose weights are averaged; returns (average, executor)."""
    loss = mean(mul(data("x", [-1, 2]), parameter("w", [1, 2])))
    SGD(1.0).minimize(loss)
    average = make()
    executor = Executor()
    executor.run(default_startup_program())
    return average, executor


def train(executor, batches=BATCHES):
    """The weights after every step."""
    found = []
    for batch in batches:
        executor.run(feed={"x": batch})
        found.append(global_scope().array("w").copy())
    return found


def moving(**arguments):
    average = ExponentialMovingAverage(**arguments)
    average.update()
    return average


def test_the_moving_average_takes_the_place_of_the_weights_and_gives_it_back():
    average, executor = prepare(lambda: moving(decay=0.7))
    weights = train(executor)
    ema = np.zeros(2)
    for weight in weights:
        ema = 0.7 * ema + 0.3 * weight
    for _ in range(2):  # asking twice must not correct twice
        with average.apply(executor):
            np.testing.assert_allclose(global_scope().array("w"), ema / (1 - 0.7 ** 7), rtol=1e-5)
        np.testing.assert_array_equal(global_scope().array("w"), weights[-1])


def test_the_average_may_stay_until_it_is_restored_by_hand():
    average, executor = prepare(lambda: moving(decay=0.5))
    weights = train(executor, BATCHES[:1])
    executor.run(feed={"x": BATCHES[1]})
    last = global_scope().array("w").copy()
    with average.apply(executor, need_restore=False):
        pass
    want = (0.5 * weights[0] + last) * 0.5 / 0.75
    np.testing.assert_allclose(global_scope().array("w"), want, rtol=1e-5)
    average.restore(executor)
    np.testing.assert_array_equal(global_scope().array("w"), last)


def test_before_the_first_update_the_weights_stay():
    average, executor = prepare(lambda: moving(decay=0.7))
    with average.apply(executor):
        np.testing.assert_array_equal(global_scope().array("w"), [1, 2])


def test_the_decay_grows_with_the_step():
    average, executor = prepare(lambda: moving(decay=0.3, thres_steps=autoincreased_step_counter("steps", begin=0)))
    weights = train(executor)
    ema, power = np.zeros(2), 1.0
    for step, weight in enumerate(weights):
        decay = min(0.3, (1 + step) / (10 + step))
        ema, power = decay * ema + (1 - decay) * weight, power * decay
    with average.apply(executor):
        np.testing.assert_allclose(global_scope().array("w"), ema / (1 - power), rtol=1e-5)


def test_parameters_can_be_left_out():
    parameter("alone", [5.0]).do_model_average = False
    average, executor = prepare(lambda: moving(decay=0.5))
    assert [param.name for param in average._params] == ["w"]


@pytest.mark.parametrize("window, least, most, averaged", [
    (1.0, 100, 100, range(0, 7)),   # no window is full yet: all steps
    (0.0, 2, 2, range(4, 7)),       # windows of two: the last full one and what followed
    (0.5, 1, 100, range(2, 7)),     # half of all steps: windows end after 1, 2 and 4
])
def test_the_mean_over_a_window_takes_the_place_of_the_weights(window, least, most, averaged):
    average, executor = prepare(lambda: ModelAverage(window, least, most))
    weights = train(executor)
    with average.apply(executor):
        want = np.mean([weights[step] for step in averaged], axis=0)
        np.testing.assert_allclose(global_scope().array("w"), want, rtol=1e-5)
    np.testing.assert_array_equal(global_scope().array("w"), weights[-1])


def test_a_program_for_test_averages_nothing():
    prepare(lambda: ModelAverage(0.5, 1, 10))
    types = {op.type for op in default_main_program().clone(for_test=True).global_block().ops}
    assert "average_accumulates" not in types and "mean" in types


def test_there_must_be_something_to_average():
    with pytest.raises(UsageError, match="no parameter to average"):
        ExponentialMovingAverage()
    parameter("w", [1.0])
    with pytest.raises(UsageError, match="thres_steps must be a variable"):
        ExponentialMovingAverage(thres_steps=3)
