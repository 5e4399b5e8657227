"""StaticRNN: against the same steps written out, and against differences; planned and interpreted."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.backward import append_backward
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.engine import plan
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_startup_program
from fleet_mpi.program.layers.activation import tanh
from fleet_mpi.program.layers.comparison import less_than
from fleet_mpi.program.layers.control_flow import cond
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.embedding import embedding
from fleet_mpi.program.layers.manipulation import slice as cut, squeeze, stack
from fleet_mpi.program.layers.math import matmul, scale
from fleet_mpi.program.layers.reduction import mean, reduce_sum
from fleet_mpi.program.layers.static_rnn import StaticRNN
from fleet_mpi.program.layers.tensor import fill_constant
from tests.unit.program.building import from_scratch
from tests.unit.program.differences import check_gradients, gradients_of

rng = np.random.default_rng(6)
X, W, U, H0 = (rng.normal(size=size) for size in ((4, 2, 3), (3, 2), (2, 2), (2, 2)))


@pytest.fixture(params=["planned", "interpreted"])
def way(request, monkeypatch):
    """Both ways to run a program that has no dynamic op."""
    if request.param == "interpreted":
        monkeypatch.setattr(plan, "is_dynamic", lambda ops: True)
    else:
        monkeypatch.setattr(plan, "InterpretedPlan", None)


def fed(name, shape):
    var = static_data(name, shape, "float64")
    var.stop_gradient = False
    return var


def sources():
    return [fed("x", [-1, 2, 3]), fed("w", [3, 2]), fed("u", [2, 2]), fed("h", [2, 2])]


def feed():
    return {"x": X.copy(), "w": W.copy(), "u": U.copy(), "h": H0.copy()}


def network(x, w, u, h):
    rnn = StaticRNN()
    with rnn.step():
        now, before = rnn.step_input(x), rnn.memory(init=h)
        hidden = tanh(matmul(now, w) + matmul(before, u))
        rnn.update_memory(before, hidden)
        rnn.step_output(hidden)
    return rnn()


def written_out(x, w, u, h):
    steps = []
    for t in range(len(X)):
        now = squeeze(cut(x, [0], [t], [t + 1]), [0])
        h = tanh(matmul(now, w) + matmul(h, u))
        steps.append(h)
    return stack(steps)


def test_steps_and_gradients_are_those_of_the_steps_written_out(way):
    found = []
    for build in (network, written_out):
        with from_scratch():
            given = sources()
            out = build(*given)
            found.append(gradients_of(reduce_sum(out * out), given, feed()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-15)
    for got, want in zip(found[0][1], found[1][1]):
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)


def test_shapes_are_known_while_it_is_built():
    out = network(*sources())
    assert out.shape == (-1, 2, 2) and out.dtype == "float64"


def test_two_states_that_change_places_and_a_result_that_is_no_state(way):
    x, w, u, h = sources()
    rnn = StaticRNN()
    with rnn.step():
        now = rnn.step_input(x)
        one, two = rnn.memory(init=h), rnn.memory(shape=[-1, 2], batch_ref=now, init_value=0.5)
        new = tanh(matmul(now, w) + matmul(one, u) * two)
        rnn.update_memory(one, two)
        rnn.update_memory(two, new)
        rnn.output(one * new, new)
    first, second = rnn()
    check_gradients(reduce_sum(first * second) + reduce_sum(first), [x, w, u, h], feed())


def test_the_last_step_may_be_the_first(way):
    x, w, u, h = sources()
    rnn = StaticRNN()
    rnn.is_reverse = True
    with rnn.step():
        now, before = rnn.step_input(x), rnn.memory(init=h)
        hidden = tanh(matmul(now, w) + matmul(before, u))
        rnn.update_memory(before, hidden)
        rnn.step_output(hidden)
    out = rnn()
    found, = Executor().run(feed=feed(), fetch_list=[out])
    state, want = H0, []
    for row in X[::-1]:
        state = np.tanh(row @ W + state @ U)
        want.insert(0, state)
    np.testing.assert_allclose(found, want, rtol=1e-12)
    check_gradients(reduce_sum(out * out), [x, w, u, h], feed())


def test_a_loop_in_a_loop_and_a_branch_in_it(way):
    x, w, u, h = sources()
    outer = StaticRNN()
    with outer.step():
        now, state = outer.step_input(x), outer.memory(init=h)
        flag = less_than(reduce_sum(now), fill_constant([1], "float64", 0.0))
        state_now = cond(flag, lambda: scale(state, 2.0), lambda: tanh(state))
        inner, rows, none = StaticRNN(), matmul(now, w), fill_constant([2], "float64", 0.0)
        with inner.step():
            row, total = inner.step_input(rows), inner.memory(init=none)
            more = total * row + row
            inner.update_memory(total, more)
            inner.step_output(tanh(more))
        new = matmul(inner() + state_now, u)
        outer.update_memory(state, new)
        outer.step_output(new)
    out = outer()
    check_gradients(reduce_sum(out * out), [x, w, u, h], feed())


@pytest.mark.parametrize("is_sparse", [False, True])
def test_parameters_used_in_a_step_have_one_gradient(is_sparse):
    ids = static_data("ids", [3, 2, 1], "int64")
    rnn = StaticRNN()
    with rnn.step():
        word = embedding(rnn.step_input(ids), [5, 2], is_sparse=is_sparse, param_attr=ParamAttr(name="table"))
        before = rnn.memory(shape=[-1, 2], batch_ref=ids)
        hidden = fc([word, before], 2, param_attr=ParamAttr(name="fc.w"), bias_attr=False)
        rnn.update_memory(before, hidden)
        rnn.step_output(hidden)
    pairs = append_backward(mean(rnn()))
    executor = Executor()
    executor.run(default_startup_program())
    assert len(pairs) == len({param.name for param, _ in pairs})
    found = executor.run(feed={"ids": np.array([0, 1, 4, 1, 2, 2]).reshape(3, 2, 1)},
                         fetch_list=[grad for _, grad in pairs])
    dense = {param.name: np.asarray(one.to_dense() if hasattr(one, "to_dense") else one)
             for (param, _), one in zip(pairs, found)}
    assert dense["table"].shape == (5,
                                    2) and (dense["table"][3] == 0).all() and (dense["table"][[0, 1, 2, 4]] != 0).all()


@pytest.mark.parametrize("wrong, text", [
    (lambda rnn, x: rnn.memory(), "init, or shape"), (lambda rnn, x: None, "step_input in its step"),
    (lambda rnn, x: rnn.step_input(scale(x, 2.0)), "before the block"),
    (lambda rnn, x: rnn.update_memory(x, x), "no memory"), (lambda rnn, x: rnn.step_output(3), "a variable"),
    (lambda rnn, x: [rnn.step_input(x), rnn.memory(init=x)], "never updated")])
def test_wrong_use_says_what_is_expected(wrong, text):
    x, rnn = fed("x", [4, 2, 3]), StaticRNN()
    with pytest.raises(UsageError, match=text):
        with rnn.step():
            wrong(rnn, x)


def test_results_come_behind_the_step():
    with pytest.raises(UsageError, match="step_output"):
        StaticRNN()()
    with pytest.raises(UsageError, match="within"):
        StaticRNN().step_input(fed("x", [4, 2, 3]))
