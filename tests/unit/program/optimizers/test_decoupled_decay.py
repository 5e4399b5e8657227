"""Weight decay apart from the gradient: against a replay in numpy, of the original's formula."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.optimizers.decoupled_decay import extend_with_decoupled_weight_decay
from tests.unit.program.building import data, from_scratch, mean, mul, parameter

START, DECAY, RATE = np.array([1.0, -2.0], "float32"), np.float32(0.1), np.float32(0.05)
BATCHES = np.random.default_rng(2).normal(size=(6, 4, 2)).astype("float32")


def trained(kind, batches=BATCHES, **options):
    """w after every batch of mean(x * w), whose gradient does not depend on w; ``options`` of the class made."""
    with from_scratch():
        loss = mean(mul(data("x", [-1, 2]), parameter("w", START)))
        extend_with_decoupled_weight_decay(kind)(learning_rate=float(RATE), **options).minimize(loss)
        executor, found = Executor(), []
        executor.run(default_startup_program())
        for batch in batches:
            executor.run(feed={"x": batch})
            found.append(global_scope().array("w").copy())
        return found, [op.type for op in default_main_program().global_block().ops if op.trains]


def replayed(step, decay=DECAY):
    """The same in numpy: the decayed parameter, then the rule's step with the gradient of the one before."""
    w, found = START.copy(), []
    for number, batch in enumerate(BATCHES):
        w = w - w * decay
        w = (w - step(batch.sum(0) / np.float32(8), number)).astype("float32")
        found.append(w)
    return found


def adams(beta1=0.9, beta2=0.999):
    """Adam's steps."""
    first, second = np.zeros(2), np.zeros(2)

    def step(grad, number):
        first[:] = beta1 * first + (1 - beta1) * grad
        second[:] = beta2 * second + (1 - beta2) * grad.astype("f8") ** 2
        rate = RATE * np.sqrt(1 - beta2 ** (number + 1)) / (1 - beta1 ** (number + 1))
        return rate * first / (np.sqrt(second) + 1e-8)
    return step


def momenta():
    """Momentum's steps."""
    velocity = np.zeros(2)

    def step(grad, number):
        velocity[:] = 0.9 * velocity + grad
        return RATE * velocity
    return step


@pytest.mark.parametrize("kind, options, step", (
    (fluid.optimizer.SGD, {}, lambda: lambda grad, number: RATE * grad),
    (fluid.optimizer.Momentum, {"momentum": 0.9}, momenta), (fluid.optimizer.Adam, {}, adams)))
def test_a_parameter_is_decayed_by_itself_before_the_update_whatever_the_rate(kind, options, step):
    found, types = trained(kind, weight_decay=float(DECAY), **options)
    np.testing.assert_allclose(found, replayed(step()), rtol=2e-5)
    place = types.index(kind.__name__.lower())
    assert types[place - 3:place] == ["scale", "elementwise_sub", "assign"]


def test_the_coefficient_may_be_a_variable():
    def coefficient():
        return fluid.layers.fill_constant([1], "float32", float(DECAY))
    with from_scratch():
        loss = mean(mul(data("x", [-1, 2]), parameter("w", START)))
        extend_with_decoupled_weight_decay(fluid.optimizer.SGD)(coefficient(), learning_rate=float(RATE)).minimize(loss)
        executor = Executor()
        executor.run(default_startup_program())
        executor.run(feed={"x": BATCHES[0]})
        np.testing.assert_array_equal(global_scope().array("w"),
                                      trained(fluid.optimizer.SGD, BATCHES[:1], weight_decay=float(DECAY))[0][0])


@pytest.mark.parametrize("options", ({"weight_decay": 0.0}, {"weight_decay": 0.5,
                                                             "apply_decay_param_fun": lambda name: name != "w"}))
def test_what_is_not_to_decay_does_not(options):
    found, types = trained(fluid.optimizer.SGD, **options)
    np.testing.assert_allclose(found, replayed(lambda grad, number: RATE * grad, np.float32(0)), rtol=2e-5)
    assert "elementwise_sub" not in types


def test_what_cannot_be_extended_or_cannot_decay_is_refused():
    with pytest.raises(UsageError, match="expected a class of fluid.optimizer, got 1"):
        extend_with_decoupled_weight_decay(1)
    with pytest.raises(UsageError, match="weight_decay must be a number or a variable, got 'a'"):
        fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.SGD)("a", learning_rate=0.1)
