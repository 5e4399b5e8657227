"""Gradients through branches and loops: against differences, and to the last digits against the loop written out."""

import functools
import operator

import numpy as np
import pytest

from fleet_mpi.program.build.backward import append_backward
from fleet_mpi.program.build.initializers import Uniform
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.engine import plan
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers.activation import tanh
from fleet_mpi.program.layers.comparison import equal, less_than, logical_not
from fleet_mpi.program.layers.control_flow import (
    ConditionalBlock,
    Switch,
    While,
    case,
    cond,
    switch_case,
    while_loop,
)
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.embedding import embedding
from fleet_mpi.program.layers.manipulation import concat
from fleet_mpi.program.layers.math import cast, increment, matmul, scale
from fleet_mpi.program.layers.reduction import mean, reduce_sum
from fleet_mpi.program.layers.tensor import assign, fill_constant, uniform_random
from fleet_mpi.program.layers.tensor_array import array_read, array_write, create_array
from fleet_mpi.program.optimizers.plain import SGD
from tests.unit.program.building import from_scratch
from tests.unit.program.differences import check_gradients, gradients_of
from tests.unit.program.ops.checking import StandInPlace

X = np.random.default_rng(3).normal(size=(2, 3))
W = np.random.default_rng(4).normal(size=(3, 3))


def fed(name, shape):
    var = static_data(name, shape, "float64")
    var.stop_gradient = False
    return var


def sources():
    return [fed("x", [2, 3]), fed("w", [3, 3])]


def number(value, dtype="int64"):
    return fill_constant([1], dtype, value)


def feed(**more):
    return {"x": X.copy(), "w": W.copy(), **more}


def turns(count, body, state=None):
    """A loop of so many turns: ``body(i)``; ``count`` may be a variable."""
    i, last = number(0), number(count) if isinstance(count, int) else count
    more = less_than(i, last)
    with While(more).block():
        body(i)
        increment(i)
        less_than(i, last, cond=more)


@pytest.fixture(params=["planned", "interpreted"])
def way(request, monkeypatch):
    """Both ways to run a program that has no dynamic op."""
    if request.param == "interpreted":
        monkeypatch.setattr(plan, "is_dynamic", lambda ops: True)
    else:
        monkeypatch.setattr(plan, "InterpretedPlan", None)


@pytest.mark.parametrize("limit", [-10.0, 10.0])
def test_the_branch_that_ran_has_the_gradient(way, limit):
    x, w = sources()
    out = cond(less_than(reduce_sum(x), number(limit, "float64")), lambda: tanh(matmul(x, w)), lambda: scale(x, 3.0))
    loss = reduce_sum(out * out)
    _, (dx, dw) = gradients_of(loss, [x, w], feed())
    with from_scratch():
        x, w = sources()
        plain = tanh(matmul(x, w)) if limit > 0 else scale(x, 3.0) + scale(matmul(x, w), 0.0)
        _, (want_x, want_w) = gradients_of(reduce_sum(plain * plain), [x, w], feed())
    np.testing.assert_allclose(dx, want_x, rtol=1e-14)
    np.testing.assert_allclose(dw, want_w, rtol=1e-14, atol=0)


@pytest.mark.parametrize("limit", [-10.0, 10.0])
def test_a_variable_that_a_branch_may_replace_hands_its_gradient_on(way, limit):
    x, w = sources()
    out = tanh(x)
    with ConditionalBlock([less_than(reduce_sum(x), number(limit, "float64"))], is_scalar_condition=True).block():
        assign(matmul(out, w) * out, out)
    loss = reduce_sum(out * out)
    check_gradients(loss, [x, w] if limit > 0 else [x], feed())


def test_cases_of_a_switch_and_branches_in_branches(way):
    x, w = sources()
    out = scale(x, 1.0)
    total = reduce_sum(x)
    with Switch() as switch:
        with switch.case(less_than(total, number(-10.0, "float64"))):
            assign(x, out)
        with switch.default():
            inner = cond(less_than(total, number(10.0, "float64")), lambda: matmul(tanh(x), w), lambda: x)
            assign(inner * x, out)
    check_gradients(reduce_sum(out * out), [x, w], feed())


def branches(x, w):
    """Four functions of both, one of which gives back what it was given."""
    return [lambda: tanh(matmul(x, w)), lambda: matmul(x, w) * x, lambda: x, lambda: tanh(x) + matmul(tanh(x), w)]


@pytest.mark.parametrize("limits", [(10.0, 20.0, 30.0), (-10.0, 20.0, 30.0), (-10.0, -20.0, 30.0), (-10.0,) * 3])
def test_whichever_of_several_cases_runs_its_gradient_is_right(way, limits):
    x, w = sources()
    total, (*functions, default) = reduce_sum(x), branches(x, w)
    pairs = [(less_than(total, number(limit, "float64")), one) for limit, one in zip(limits, functions)]
    out = case(pairs, default) * x
    check_gradients(reduce_sum(out * out), [x, w], feed())


@pytest.mark.parametrize("chosen", [0, 1, 2, 7])
def test_whichever_branch_a_number_chooses_its_gradient_is_right(way, chosen):
    x, w = sources()
    *functions, default = branches(x, w)
    inner = switch_case(number(chosen), dict(enumerate(functions)), default)
    out = switch_case(static_data("index", [1], "int64"), [lambda: inner, lambda: inner * x], lambda: matmul(inner, w))
    check_gradients(reduce_sum(out * out), [x, w], feed(index=np.array([chosen])))


def losses_of(choose):
    """Losses of ten steps of SGD at rate 0.1; ``choose(index, functions)`` is one of three layers with parameters."""
    with from_scratch() as (program, _):
        x, index = static_data("x", [8, 3], "float32"), static_data("index", [1], "int64")
        h = fc(x, 4, param_attr=ParamAttr(name="h", initializer=Uniform(-0.5, 0.5, seed=1)))
        functions = [lambda name=name: fc(tanh(h), 2, param_attr=ParamAttr(
            name=name, initializer=Uniform(-0.5, 0.5, seed=1)), bias_attr=ParamAttr(name + "b")) for name in "abc"]
        out = choose(index, functions)
        loss = mean((out - reduce_sum(x, 1, keep_dim=True)) * (out - 1.0))
        SGD(0.1).minimize(loss)
        executor, draws = Executor(), np.random.default_rng(5)
        executor.run(default_startup_program())
        return [executor.run(program, feed={"x": draws.normal(size=(8, 3)).astype("float32"),
                                            "index": np.array([step % 3])}, fetch_list=[loss])[0] for step in range(10)]


def masked(index, functions):
    """All branches, of which all but one count 0 times."""
    first, *more = [function() * cast(equal(index, number(place)), "float32")
                    for place, function in enumerate(functions)]
    return functools.reduce(operator.add, more, first)


def by_cases(index, functions):
    """As ``switch_case``, by conditions."""
    return case([(equal(index, number(place)), function) for place, function in enumerate(functions)])


@pytest.mark.parametrize("choose", [switch_case, by_cases])
def test_training_through_branches_is_the_training_of_their_masked_sum_to_the_bit(choose):
    np.testing.assert_array_equal(losses_of(choose), losses_of(masked))


def unrolled(count):
    with from_scratch():
        x, w = sources()
        h = x
        for _ in range(count):
            h = tanh(matmul(h, w))
        return gradients_of(reduce_sum(h * h), [x, w], feed())


@pytest.mark.parametrize("place", [None, StandInPlace()])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_loop_has_the_gradient_of_the_loop_written_out(count, place):
    x, w = sources()
    h = scale(x, 1.0)
    turns(count, lambda i: assign(tanh(matmul(h, w)), h))
    loss, found = gradients_of(reduce_sum(h * h), [x] if count == 0 else [x, w], feed(), place)
    want_loss, want = unrolled(count) if count else (loss, [2 * X])
    np.testing.assert_array_equal(loss, want_loss)
    for got, one in zip(found, want):
        np.testing.assert_allclose(got, one, rtol=1e-13, atol=1e-15)


def test_a_value_that_the_body_changes_is_kept_for_the_gradient_of_every_turn():
    x, w = sources()
    h = tanh(x)                       # its gradient reads what the loop replaces

    def body(i):
        assign(h * h, h)
        t = matmul(h, w)
        assign(t * h, h)
        assign(h * x, t)
        assign(tanh(t), h)
    turns(3, body)
    check_gradients(reduce_sum(h * h), [x, w], feed())


def test_a_state_that_only_the_next_turn_reads_has_a_gradient():
    x, w = sources()
    h, total = scale(x, 1.0), number(0.0, "float64")

    def body(i):
        assign(total + reduce_sum(h * h), total)
        assign(tanh(matmul(h, w)), h)
    turns(4, body)
    assert not total.stop_gradient
    check_gradients(total, [x, w], feed())


def test_a_state_that_a_turn_replaces_by_a_constant_ends_the_gradient():
    x, w = sources()
    h = scale(x, 1.0)

    def body(i):
        fill_constant([2, 3], "float64", 0.5, out=h)
        assign(matmul(h, w), h)
    turns(2, body)
    _, (dw,) = gradients_of(reduce_sum(h * h), [w], feed())
    np.testing.assert_allclose(dw, 2 * np.full((2, 3), 0.5).T @ (np.full((2, 3), 0.5) @ W))


def test_a_state_that_grows_at_every_turn():
    x, w = sources()
    h = scale(x, 1.0)
    turns(3, lambda i: assign(concat([h, tanh(matmul(h, w))]), h))
    check_gradients(reduce_sum(h * h), [x, w], feed())


def test_a_loop_in_a_branch_in_a_loop():
    x, w = sources()
    h = scale(x, 0.5)

    def outer(i):
        def inner(j):
            assign(tanh(matmul(h, w)) + scale(h, 0.5), h)
        flag = less_than(number(0), i)
        with ConditionalBlock([flag], is_scalar_condition=True).block():
            turns(i, inner)
        with ConditionalBlock([logical_not(flag)], is_scalar_condition=True).block():
            assign(h * x, h)
    turns(3, outer)
    check_gradients(reduce_sum(h * h), [x, w], feed())


def test_functions_make_a_loop_that_trains():
    x, w = sources()
    _, h = while_loop(lambda i, h: less_than(i, number(3)), lambda i, h: [i + number(1), tanh(matmul(h, w))],
                      [number(0), scale(x, 1.0)])
    check_gradients(reduce_sum(h * h), [x, w], feed())


def test_arrays_that_a_loop_reads_and_writes_have_gradients():
    x, w = sources()
    inputs = array_write(x, number(0))
    array_write(scale(x, 2.0), number(1), inputs)
    states = array_write(scale(x, 0.1), number(0))
    sums = create_array("float64")

    def body(i):
        before, now = array_read(states, i), array_read(inputs, i)
        new = tanh(matmul(before, w) + now)
        array_write(new * now, i, sums)
        array_write(new, i + number(1), states)
    turns(2, body)
    loss = reduce_sum(array_read(states, number(2))) + reduce_sum(array_read(sums, number(0))
                                                                  * array_read(sums, number(1)))
    check_gradients(loss, [x, w], feed())


def test_a_position_that_is_written_again_has_the_gradient_of_its_last_tensor():
    x, w = sources()
    places = array_write(x * x, number(0))
    first = array_read(places, number(0))
    array_write(matmul(first, w), number(0), places)
    loss = reduce_sum(array_read(places, number(0)) * array_read(places, number(0))) + reduce_sum(first)
    check_gradients(loss, [x, w], feed())


def test_an_array_made_in_a_body_is_new_at_every_turn():
    x, w = sources()
    h = scale(x, 1.0)

    def body(i):
        steps = array_write(tanh(matmul(h, w)), number(0))
        assign(array_read(steps, number(0)) * x, h)
    turns(3, body)
    check_gradients(reduce_sum(h * h), [x, w], feed())


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_table_looked_up_at_every_turn_has_one_gradient(is_sparse):
    ids = static_data("ids", [3, 1], "int64")
    h = fill_constant([3, 2], "float32", 0.0)
    attr = ParamAttr(name="table")
    turns(2, lambda i: assign(h + embedding(ids, [5, 2], is_sparse=is_sparse, param_attr=attr), h))
    (param, grad), = append_backward(mean(h))
    executor = Executor()
    executor.run(default_startup_program())
    found, = executor.run(feed={"ids": np.array([[1], [4], [1]])}, fetch_list=[grad])
    found = np.asarray(found.to_dense() if hasattr(found, "to_dense") else found)
    np.testing.assert_allclose(found, np.array([0, 4, 0, 0, 2])[:, None] * np.ones((5, 2)) / 6, rtol=1e-6)


def test_a_program_for_tests_keeps_nothing_of_its_turns():
    x, w = sources()
    h = scale(x, 1.0)
    turns(2, lambda i: assign(tanh(matmul(h, w)), h))
    gradients_of(reduce_sum(h), [x, w], feed())
    program = default_main_program().clone(for_test=True)
    loop, = [op for op in program.global_block().ops if op.type == "while"]
    assert loop.attrs["is_test"] and not any(op.trains for block in program.blocks for op in block.ops)
    found, = Executor().run(program, feed=feed(), fetch_list=[h.name])
    np.testing.assert_allclose(found, np.tanh(np.tanh(X @ W) @ W))


def test_a_saved_program_has_the_same_gradients():
    x, w = sources()
    h = scale(x, 1.0)
    turns(2, lambda i: assign(tanh(matmul(h, w)), h))
    _, found = gradients_of(reduce_sum(h), [x, w], feed())
    program = default_main_program()
    again = type(program).parse_from_string(program.serialize_to_string())
    for got, want in zip(Executor().run(again, feed=feed(), fetch_list=["x@GRAD", "w@GRAD"]), found):
        np.testing.assert_array_equal(got, want)


def test_every_turn_draws_its_own_numbers_and_what_follows_draws_as_without_the_loop():
    draws = []
    for count in (0, 3):
        with from_scratch() as (program, _):
            program.random_seed = 5
            steps = create_array("float32")
            turns(count, lambda i: array_write(uniform_random([4], name="inside"), i, steps))
            after = uniform_random([4], name="after")
            draws.append(Executor().run(feed={}, fetch_list=[after, *([steps] if count else [])]))
    np.testing.assert_array_equal(draws[0][0], draws[1][0])
    assert len({row.tobytes() for row in draws[1][1]}) == 3
