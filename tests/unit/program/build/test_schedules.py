"""fleet_mpi/program/build/schedules.py: 50 steps of every schedule."""

import math

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build import schedules
from fleet_mpi.program.engine import schedule_fusion
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.liveness import live_ops
from fleet_mpi.program.engine.schedule_fusion import fuse_schedules
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.graph.types import Role
from fleet_mpi.program.layers.comparison import less_than
from fleet_mpi.program.layers.control_flow import Switch, While
from fleet_mpi.program.layers.math import increment
from fleet_mpi.program.layers.tensor import assign, create_global_var, fill_constant
from fleet_mpi.program.optimizers.plain import SGD
from tests.unit.program.building import data, mean, mul, parameter
from tests.unit.program.ops.checking import StandInPlace

STEPS = 50


def polynomial(step, cycle):
    length = 20 * max(1, math.ceil(step / 20)) if cycle else 20
    step = step if cycle else min(step, 20)
    return (0.5 - 0.01) * (1 - step / length) ** 2 + 0.01


# What to call it with, and the rate at a step by the formula.
SCHEDULES = [
    ("exponential_decay", (0.5, 10, 0.7), lambda step: 0.5 * 0.7 ** (step / 10)),
    ("exponential_decay", (0.5, 10, 0.7, True), lambda step: 0.5 * 0.7 ** (step // 10)),
    ("natural_exp_decay", (0.5, 10, 0.7), lambda step: 0.5 * math.exp(-0.7 * step / 10)),
    ("natural_exp_decay", (0.5, 10, 0.7, True), lambda step: 0.5 * math.exp(-0.7 * (step // 10))),
    ("inverse_time_decay", (0.5, 10, 0.7), lambda step: 0.5 / (1 + 0.7 * step / 10)),
    ("inverse_time_decay", (0.5, 10, 0.7, True), lambda step: 0.5 / (1 + 0.7 * (step // 10))),
    ("polynomial_decay", (0.5, 20, 0.01, 2.0), lambda step: polynomial(step, False)),
    ("polynomial_decay", (0.5, 20, 0.01, 2.0, True), lambda step: polynomial(step, True)),
    ("piecewise_decay", ([10, 30], [0.5, 0.25, 0.1]),
     lambda step: 0.5 if step < 10 else 0.25 if step < 30 else 0.1),
    ("cosine_decay", (0.5, 10, 4), lambda step: 0.5 * (math.cos((step // 10) * math.pi / 4) + 1) / 2),
    ("linear_lr_warmup", (0.5, 10, 0.1, 0.3), lambda step: 0.1 + 0.2 * step / 10 if step < 10 else 0.5),
    ("noam_decay", (64, 10), lambda step: 64 ** -0.5 * min((step + 1) ** -0.5, (step + 1) * 10 ** -1.5)),
    ("noam_decay", (64, 10, 2.0), lambda step: 2 * 64 ** -0.5 * min((step + 1) ** -0.5, (step + 1) * 10 ** -1.5)),
]


def rates(variable, steps=STEPS, place=None):
    executor = Executor(place)
    executor.run(default_startup_program())
    return [float(executor.run(fetch_list=[variable])[0]) for _ in range(steps)]


@pytest.mark.parametrize("name, arguments, formula", SCHEDULES,
                         ids=lambda value: None if callable(value) else str(value)[:40])
def test_the_rate_of_every_step_equals_the_formula(name, arguments, formula):
    found = rates(getattr(schedules, name)(*arguments))
    np.testing.assert_array_equal(found, [np.float32(formula(step)) for step in range(STEPS)])


def each_schedule(test):
    return pytest.mark.parametrize("name, arguments, formula", SCHEDULES,
                                   ids=lambda value: None if callable(value) else str(value)[:40])(test)


@each_schedule
def test_its_ops_by_themselves_compute_it_in_float32(name, arguments, formula, monkeypatch):
    monkeypatch.setattr(schedule_fusion, "MARK", "nobody's")
    found = rates(getattr(schedules, name)(*arguments))
    np.testing.assert_allclose(found, [formula(step) for step in range(STEPS)], rtol=2e-5)


@each_schedule
def test_on_a_device_nothing_passes_through_the_host(name, arguments, formula):
    found = rates(getattr(schedules, name)(*arguments), 40, StandInPlace())
    np.testing.assert_allclose(found, [formula(step) for step in range(40)], rtol=1e-6)


@each_schedule
def test_a_plan_has_one_op_for_the_counter_and_one_for_the_schedule(name, arguments, formula):
    variable = getattr(schedules, name)(*arguments)
    ops = fuse_schedules(live_ops(default_main_program(), [variable.name]), [variable.name])
    assert [op.type for op in ops] == ["increment", "fused_schedule"]
    assert ops[1].output("Out") == [variable.name]


def test_a_schedule_within_a_case_of_a_script_keeps_its_bits():
    """As scripts of the time wrote warm-up: a schedule made within a Switch, copied into a rate of their own."""
    with default_main_program()._lr_schedule_guard():
        rate = create_global_var([1], 0.0, "float32", persistable=True, name="scheduled")
        step = schedules._decay_step_counter()
        with Switch() as switch:
            with switch.case(step < 3.0):
                assign(step * 0.125, rate)
            with switch.default():
                assign(schedules.exponential_decay(0.5, 10, 0.7), rate)
    assert rates(rate, 20) == [step * 0.125 if step < 3 else np.float32(0.5 * 0.7 ** (step / 10)) for step in range(20)]


def test_a_rate_that_another_schedule_reads_is_the_float32_one():
    first = schedules.exponential_decay(0.5, 10, 0.7)
    second = schedules.cosine_decay(first, 1, 40)
    executor = Executor()
    executor.run(default_startup_program())
    for step in range(20):
        one, two = executor.run(fetch_list=[first, second])
        assert one == np.float32(0.5 * 0.7 ** (step / 10))
        assert two == np.float32(float(one[0]) * 0.5 * (math.cos(step * math.pi / 40) + 1))


def test_what_lies_between_is_there_for_whom_it_is_fetched():
    rate = schedules.exponential_decay(0.5, 10, 0.7, staircase=True)
    periods = next(op for op in default_main_program().global_block().ops if op.type == "floor").output("Out")[0]
    executor = Executor()
    executor.run(default_startup_program())
    found = [executor.run(fetch_list=[rate, periods]) for _ in range(15)]
    assert [float(one[1]) for one in found] == [0.0] * 10 + [1.0] * 5
    assert [one[0] for one in found] == [np.float32(0.5)] * 10 + [np.float32(0.35)] * 5


def test_a_program_that_is_interpreted_has_the_same_bits():
    rate = schedules.exponential_decay(0.5, 10, 0.7)
    count = fill_constant([1], "int64", 0)
    goes_on = less_than(count, fill_constant([1], "int64", 2))
    with While(goes_on).block():
        increment(count, 1, in_place=True)
        less_than(count, fill_constant([1], "int64", 2), cond=goes_on)
    executor = Executor()
    executor.run(default_startup_program())
    found = [executor.run(fetch_list=[rate, count]) for _ in range(20)]
    assert [float(one) for one, _ in found] == [np.float32(0.5 * 0.7 ** (step / 10)) for step in range(20)]


def test_warmup_leads_to_another_schedule():
    variable = schedules.linear_lr_warmup(schedules.exponential_decay(1.0, 1, 0.5), 3, 0.0, 0.3)
    np.testing.assert_allclose(rates(variable, 5), [0.0, 0.1, 0.2, 0.125, 0.0625], rtol=1e-6)


def test_schedules_share_one_counter_which_the_head_of_the_program_moves_on():
    schedules.exponential_decay(1.0, 1, 0.5)
    schedules.noam_decay(64, 10)
    ops = default_main_program().global_block().ops
    assert [op.type for op in ops] == [
        "increment", "cast", "fill_constant", "elementwise_div", "fill_constant", "elementwise_pow", "fill_constant",
        "elementwise_mul", "cast", "fill_constant", "elementwise_pow", "fill_constant", "elementwise_mul",
        "elementwise_min", "fill_constant", "elementwise_mul"]
    assert {op.attrs["op_role"] for op in ops} == {int(Role.LRSched)}
    counter = default_main_program().global_block().var("@LR_DECAY_COUNTER@")
    assert counter.dtype == "int64" and counter.persistable


def test_the_counter_as_floats_serves_schedules_of_a_script():
    step = schedules._decay_step_counter()
    assert step.dtype == "float32"
    assert rates(step, 3) == [0.0, 1.0, 2.0]


def test_a_counter_of_ones_own():
    counter = schedules.autoincreased_step_counter("mine", begin=5, step=2)
    assert rates(counter, 3) == [5.0, 7.0, 9.0]


def test_an_optimizer_follows_a_schedule_and_a_program_for_test_has_none():
    loss = mean(mul(data("x", [2]), parameter("w", [0, 0])))
    test = default_main_program().clone(for_test=True)
    optimizer = SGD(schedules.piecewise_decay([1], [1.0, 0.5]))
    optimizer.minimize(loss)
    assert optimizer._global_learning_rate().name == "learning_rate_0"
    executor = Executor()
    executor.run(default_startup_program())
    for _ in range(3):
        executor.run(feed={"x": np.array([2, 2], "float32")})
    np.testing.assert_allclose(global_scope().array("w"), -(1.0 + 0.5 + 0.5))
    assert optimizer.get_lr() == 0.5
    assert not any(op.attrs["op_role"] for op in test.global_block().ops)


@pytest.mark.parametrize("make, text", [
    (lambda: schedules.piecewise_decay([1], [1.0]), "one value more than boundaries"),
    (lambda: schedules.piecewise_decay([3, 1], [1.0, 2.0, 3.0]), "rising boundaries"),
    (lambda: schedules.exponential_decay(0.1, 0, 0.5), "decay_steps must be above 0"),
])
def test_what_makes_no_sense_is_refused(make, text):
    with pytest.raises(UsageError, match=text):
        make()
