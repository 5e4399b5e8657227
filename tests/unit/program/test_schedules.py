"""fleet_mpi/program/schedules.py: 50 steps of every schedule."""

import math

import numpy as np
import pytest
from building import data, mean, mul, parameter

from fleet_mpi.errors import UsageError
from fleet_mpi.program import schedules
from fleet_mpi.program.executor import Executor
from fleet_mpi.program.optimizers.plain import SGD
from fleet_mpi.program.program import default_main_program, default_startup_program
from fleet_mpi.program.scope import global_scope
from fleet_mpi.program.types import Role

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


def rates(variable, steps=STEPS):
    executor = Executor()
    executor.run(default_startup_program())
    return [float(executor.run(fetch_list=[variable])[0]) for _ in range(steps)]


@pytest.mark.parametrize("name, arguments, formula", SCHEDULES,
                         ids=lambda value: None if callable(value) else str(value)[:40])
def test_the_rate_of_every_step_equals_the_formula(name, arguments, formula):
    found = rates(getattr(schedules, name)(*arguments))
    np.testing.assert_array_equal(found, [np.float32(formula(step)) for step in range(STEPS)])


def test_warmup_leads_to_another_schedule():
    variable = schedules.linear_lr_warmup(schedules.exponential_decay(1.0, 1, 0.5), 3, 0.0, 0.3)
    np.testing.assert_allclose(rates(variable, 5), [0.0, 0.1, 0.2, 0.125, 0.0625], rtol=1e-6)


def test_schedules_share_one_counter_which_the_head_of_the_program_moves_on():
    schedules.exponential_decay(1.0, 1, 0.5)
    schedules.noam_decay(64, 10)
    ops = default_main_program().global_block().ops
    assert [op.type for op in ops] == ["increment", "exponential_decay", "noam_decay"]
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
