"""Ops of program/ops/optimize.py."""

import numpy as np
import pytest

from fleet_mpi.arrays import Rows
from fleet_mpi.errors import ProgramError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.graph.types import VarType
from fleet_mpi.program.ops.optimize import out_slot
from fleet_mpi.update_rules import RULES
from tests.unit.program import update_formulas
from tests.unit.program.building import data, parameter
from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(0)
ATTRS = {
    "momentum": [{"mu": 0.8}, {"mu": 0.8, "use_nesterov": True}],
    "lars_momentum": [{}, {"lars_weight_decay": 0.0}],
    "rmsprop": [{"momentum": 0.3}, {"centered": True, "decay": 0.8}],
    "ftrl": [{"l1": 0.01, "l2": 0.02}, {"lr_power": -0.4}],
    "adam": [{}, {"beta1": 0.5, "epsilon": 1e-3}],
    "dgc_momentum": [{"sparsity": [0.75], "use_nesterov": flag} for flag in (False, True)]
    + [{"rampup_begin_step": 9, "sparsity": [0.75]}],
}


def state_value(state, shape):
    if state.dtype == "int64":
        return np.array([3])
    if not state.like_param:
        return np.array([0.7])
    return rng.uniform(0.1, 1.0, shape)


def expected(rule):
    """The op's outputs from the formula of the same name."""
    def expect(inputs, attrs):
        states = {state.slot: inputs[state.slot] for state in rule.states}
        hypers = {"rho" if name == "decay" and rule.name == "rmsprop" else name: value
                  for name, value in attrs.items()}
        param = getattr(update_formulas, rule.name)(inputs["Param"], inputs["Grad"], inputs["LearningRate"][0],
                                                    states, **hypers)
        return {"ParamOut": param, **{out_slot(slot): value for slot, value in states.items()}}
    return expect


def case(rule, attrs, shape=(4, 5)):
    inputs = {"Param": rng.normal(size=shape), "Grad": rng.normal(size=shape), "LearningRate": np.array([0.1]),
              **{state.slot: state_value(state, shape) for state in rule.states}}
    return Case(rule.name, inputs, attrs, expected(rule), note=str(attrs))


CASES = [case(rule, attrs) for rule in RULES.values() for attrs in ATTRS.get(rule.name, [{}])]

test_forward, test_device = checks(CASES)


def sgd_on(grad, **more):
    block = default_main_program().global_block()
    parameter("lr", [0.5])
    param = parameter("w", [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    block.append_op("sgd", {"Param": [param], "Grad": [grad], "LearningRate": ["lr"], **more}, {"ParamOut": [param]})


def test_the_update_is_done_in_the_array_of_the_scope():
    sgd_on(data("g", [3, 2]))
    before = global_scope().array("w")
    Executor().run(feed={"g": np.ones((3, 2), "float32")})
    assert global_scope().array("w") is before
    np.testing.assert_array_equal(before, [[0.5, 0.5], [1.5, 1.5], [2.5, 2.5]])


def test_rows_that_repeat_are_summed_and_others_stay():
    block = default_main_program().global_block()
    block.create_var(name="g", shape=[3, 2], type=VarType.SELECTED_ROWS)
    global_scope().var("g").value = Rows(np.array([2, 0, 2]), np.ones((3, 2), "float32"), 3)
    sgd_on("g")
    Executor().run()
    np.testing.assert_array_equal(global_scope().array("w"), [[0.5, 0.5], [2, 2], [2, 2]])


@pytest.mark.parametrize("flag", [True, False])
def test_an_update_can_be_skipped(flag):
    sgd_on(data("g", [3, 2]), SkipUpdate=[data("skip", [1], "bool")])
    Executor().run(feed={"g": np.ones((3, 2), "float32"), "skip": np.array([flag])})
    assert global_scope().array("w")[0, 0] == (1.0 if flag else 0.5)


def test_a_gradient_of_another_shape_is_refused_when_the_op_is_added():
    with pytest.raises(ProgramError, match=r"sgd.*expected a gradient of the parameter's shape \[3, 2\]"):
        sgd_on(data("g", [2, 3]))
