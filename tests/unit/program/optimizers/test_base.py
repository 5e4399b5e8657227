"""fleet_mpi/program/optimizers/base.py and learning_rate.py."""

import numpy as np
import pytest

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.program.build.clip import ClipByValue
from fleet_mpi.program.build.regularizers import L2Decay
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import Program, default_main_program, default_startup_program, program_guard
from fleet_mpi.program.graph.types import Role
from fleet_mpi.program.optimizers import lr, paddle2
from fleet_mpi.program.optimizers.plain import SGD, Adam, Momentum
from tests.unit.program.building import add, data, from_scratch, mean, mul, parameter

X = np.array([[1.0, 2.0], [3.0, 5.0]], "float32")


def line():
    """mean(x * w + b), whose gradients are mean(x) / 2 and 1 / 2."""
    return mean(add(mul(data("x", [-1, 2]), parameter("w", [1, 2])), parameter("b", [0, 0])))


def ops_of(role):
    return [op for op in default_main_program().global_block().ops if op.attrs["op_role"] == int(role)]


def run(steps=1, fetches=()):
    executor = Executor()
    executor.run(default_startup_program())
    for _ in range(steps):
        found = executor.run(feed={"x": X}, fetch_list=list(fetches))
    return found


def test_minimize_returns_the_update_ops_and_the_pairs_of_backward():
    ops, pairs = SGD(0.1).minimize(line())
    assert [op.type for op in ops] == ["sgd", "sgd"]
    assert [(param.name, grad.name) for param, grad in pairs] == [("w", "w@GRAD"), ("b", "b@GRAD")]
    run()
    np.testing.assert_allclose(global_scope().array("w"), [1 - 0.1, 2 - 0.1 * 3.5 / 2], rtol=1e-6)
    np.testing.assert_allclose(global_scope().array("b"), [-0.05, -0.05], rtol=1e-6)


def test_updates_go_by_the_names_of_parameters_and_say_whose_they_are():
    SGD(0.1).minimize(line())
    assert [op.attr("op_role_var") for op in ops_of(Role.Optimize)] == [["b", "b@GRAD"], ["w", "w@GRAD"]]


def test_gradients_are_clipped_then_regularised_then_applied():
    loss = line()
    SGD(1.0, regularization=L2Decay(0.5), grad_clip=ClipByValue(0.2)).minimize(loss, parameter_list=["w"])
    assert [op.type for op in ops_of(Role.Optimize)] == ["clip", "scale", "sum", "sgd"]
    assert all(op.attr("op_role_var") == ["w", "w@GRAD"] for op in ops_of(Role.Optimize))
    raw, = run(fetches=["w@GRAD"])
    np.testing.assert_allclose(raw, [1.0, 1.75])
    np.testing.assert_allclose(global_scope().array("w"), [1 - 0.2 - 0.5, 2 - 0.2 - 1.0], rtol=1e-6)


def test_the_parts_of_minimize_can_be_called_apart():
    loss, optimizer = line(), Momentum(0.1, 0.9)
    pairs = optimizer.backward(loss)
    assert not ops_of(Role.Optimize)
    assert [op.type for op in optimizer.apply_gradients(pairs)] == ["momentum", "momentum"]
    again = optimizer.apply_optimize(loss, None, pairs)
    assert again[0].input("Velocity") == ["b_velocity_0"], "one optimizer keeps one state per parameter"


def test_states_and_rate_have_the_names_of_the_original():
    Adam(0.1).minimize(line())
    names = set(default_main_program().global_block().vars)
    assert {"learning_rate_0", "w_moment1_0", "w_moment2_0", "w_beta1_pow_acc_0", "w_beta2_pow_acc_0"} <= names
    assert all(default_startup_program().global_block().var(name).persistable
               for name in ("learning_rate_0", "w_moment1_0"))


def test_the_name_of_an_optimizer_is_part_of_its_states():
    optimizer = Momentum(0.1, 0.9, name="mine")
    optimizer.minimize(line())
    assert optimizer.get_opti_var_name_list() == ["b_mine_velocity_0", "w_mine_velocity_0"]


def test_a_startup_program_given_to_minimize_gets_the_initialisers():
    startup = Program()
    Momentum(0.1, 0.9).minimize(line(), startup_program=startup)
    assert "w_velocity_0" in startup.global_block().vars
    assert not default_startup_program().global_block().ops


def test_the_programs_are_those_of_the_loss():
    loss = line()
    main = default_main_program()
    with program_guard(Program(), Program()):
        SGD(0.1).minimize(loss)
        assert not default_main_program().global_block().ops
    assert main.global_block().ops[-1].type == "sgd"


def test_a_parameter_has_its_own_factor_of_the_rate():
    loss = line()
    block = default_main_program().global_block()
    for name in ("w", "b"):
        block.var(name).optimize_attr["learning_rate"] = 2.0
    SGD(0.1).minimize(loss)
    scales = [op for op in block.ops if op.type == "scale"]
    assert [op.attrs["op_role"] for op in scales] == [int(Role.LRSched | Role.Optimize)], "equal factors share an op"
    run()
    np.testing.assert_allclose(global_scope().array("w"), [1 - 0.2, 2 - 0.2 * 1.75], rtol=1e-6)


def test_clip_given_to_minimize_is_for_this_call():
    optimizer = SGD(1.0)
    optimizer.minimize(line(), parameter_list=["w"], grad_clip=ClipByValue(0.1))
    assert "clip" in [op.type for op in ops_of(Role.Optimize)]
    assert optimizer._grad_clip is None


def test_frozen_parameters_are_left_alone():
    loss = line()
    for field, value in (("trainable", False), ("stop_gradient", True)):
        setattr(default_main_program().global_block().var("b"), field, value)
    ops, _ = SGD(0.1).minimize(loss)
    assert [op.input("Param") for op in ops] == [["w"]]


def test_nothing_to_train_is_an_error():
    loss = mean(data("x", [-1, 2]))
    with pytest.raises(UsageError, match="no parameter gets a gradient"):
        SGD(0.1).minimize(loss)


def test_the_rate_can_be_read_and_changed_before_and_after_the_startup_program():
    optimizer = SGD(0.5)
    optimizer.minimize(line(), parameter_list=["b"])
    assert optimizer.get_lr() == 0.5
    optimizer.set_lr(0.25)
    run()
    assert global_scope().array("learning_rate_0")[0] == 0.25
    optimizer.set_lr(0.125)
    Executor().run(feed={"x": X})
    assert optimizer.get_lr() == 0.125
    np.testing.assert_allclose(global_scope().array("b"), -0.5 * (0.25 + 0.125))
    assert optimizer._global_learning_rate().name == "learning_rate_0" and isinstance(optimizer._learning_rate, float)


def test_a_scheduler_of_2x_decides_the_rate_of_every_run():
    scheduler = lr.ExponentialDecay(0.5, gamma=0.5)
    optimizer = paddle2.SGD(scheduler)
    optimizer.minimize(line(), parameter_list=["b"])
    executor = Executor()
    executor.run(default_startup_program())
    rates = []
    for _ in range(3):
        executor.run(feed={"x": X})
        rates.append(float(global_scope().array("learning_rate_0")[0]))
        scheduler.step()
    assert rates == [0.5, 0.25, 0.125]
    np.testing.assert_allclose(global_scope().array("b"), -0.5 * sum(rates))
    assert optimizer.get_lr() == 0.0625
    with pytest.raises(UsageError, match="ExponentialDecay decides"):
        optimizer.set_lr(1.0)


def test_a_scheduler_does_not_touch_a_program_for_test():
    paddle2.SGD(lr.ExponentialDecay(0.5, gamma=0.5)).minimize(line())
    test = default_main_program().clone(for_test=True)
    run()
    before = global_scope().array("w").copy()
    Executor().run(test, feed={"x": X})
    np.testing.assert_array_equal(global_scope().array("w"), before)


@pytest.mark.parametrize("wrong", [float("nan"), -0.1, float("inf"), -float("inf"), np.float32("nan")])
def test_a_rate_is_finite_and_not_negative(wrong):
    with pytest.raises(UsageError, match="SGD: learning_rate must be a finite number from 0 up, got"):
        SGD(wrong)
    with pytest.raises(UsageError, match="SGD: learning_rate must be a finite number from 0 up, got"):
        SGD(0.1).set_lr(wrong)


@pytest.mark.parametrize("wrong", ["0.1", None, [0.1], True])
def test_a_rate_must_be_a_number_a_variable_or_a_scheduler(wrong):
    with pytest.raises(UsageError, match="SGD: learning_rate must be"):
        SGD(wrong)


def test_a_schedule_of_another_program_is_refused():
    with from_scratch():
        rate = data("rate", [1])
    with pytest.raises(UsageError, match="belongs to another program"):
        SGD(rate).minimize(line())


@pytest.mark.parametrize("method", ["step", "clear_grad"])
def test_eager_methods_say_what_to_use(method):
    with pytest.raises(NotBuilt, match="minimize"):
        getattr(SGD(0.1), method)()


def test_a_loss_that_is_no_variable_is_refused():
    with pytest.raises(UsageError, match="loss variable, got str 'loss'"):
        SGD(0.1).minimize("loss")
