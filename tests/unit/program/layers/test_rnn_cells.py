"""Cells and rnn: against numpy step by step, and against differences."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.backward import append_backward
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import rnn_cells as layers
from fleet_mpi.program.layers.activation import tanh
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.math import matmul
from fleet_mpi.program.layers.reduction import mean, reduce_sum
from tests.unit.program.differences import check_gradients

rng = np.random.default_rng(11)
X = rng.normal(size=(3, 4, 2))
LENGTHS = np.array([4, 2, 1])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Plain(layers.RNNCell):
    """tanh(x w + h u) with weights that are fed."""

    def __init__(self, w, u):
        self.w, self.u = w, u

    def call(self, inputs, states):
        new = tanh(matmul(inputs, self.w) + matmul(states, self.u))
        return new, new

    @property
    def state_shape(self):
        return [3]


def fed(name, shape, dtype="float64"):
    var = static_data(name, shape, dtype)
    var.stop_gradient = dtype != "float64"
    return var


def by_hand(x, w, u, lengths, is_reverse=False):
    outputs, last = np.zeros((*x.shape[:2], 3)), np.zeros((len(x), 3))
    for row, length in enumerate(lengths):
        h = np.zeros(3)
        for t in reversed(range(x.shape[1])) if is_reverse else range(x.shape[1]):
            outputs[row, t] = np.tanh(x[row, t] @ w + h @ u)
            h = outputs[row, t] if t < length else h
        last[row] = h
    return outputs, last


@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("has_lengths", [False, True])
def test_a_cell_runs_over_all_steps(time_major, is_reverse, has_lengths):
    x = fed("x", [4, -1, 2] if time_major else [-1, 4, 2])
    cell = Plain(fed("w", [2, 3]), fed("u", [3, 3]))
    first = cell.get_initial_states(x, dtype="float64", batch_dim_idx=1 if time_major else 0)
    lengths = static_data("lengths", [-1], "int64") if has_lengths else None
    outputs, last = layers.rnn(cell, x, first, lengths, time_major, is_reverse)
    weights = {"w": rng.normal(size=(2, 3)), "u": rng.normal(size=(3, 3))}
    feed = {"x": X.transpose(1, 0, 2).copy() if time_major else X.copy(), **weights,
            **({"lengths": LENGTHS} if has_lengths else {})}
    found, end = Executor().run(feed=feed, fetch_list=[outputs, last])
    want, want_end = by_hand(X, weights["w"], weights["u"], LENGTHS if has_lengths else [4] * 3, is_reverse)
    np.testing.assert_allclose(found.transpose(1, 0, 2) if time_major else found, want, rtol=1e-12)
    np.testing.assert_allclose(end, want_end, rtol=1e-12)
    check_gradients(reduce_sum(last * last), [x, cell.w, cell.u], feed)


def test_steps_that_only_the_run_tells():
    x, lengths = fed("x", [-1, -1, 2]), static_data("lengths", [-1], "int64")
    cell = Plain(fed("w", [2, 3]), fed("u", [3, 3]))
    outputs, last = layers.rnn(cell, x, cell.get_initial_states(x, dtype="float64"), lengths)
    assert last.shape == (-1, 3) and outputs.shape == (-1, -1, 3)
    weights = {"w": rng.normal(size=(2, 3)), "u": rng.normal(size=(3, 3))}
    for count in (2, 4):
        found, = Executor().run(feed={"x": X[:, :count], "lengths": np.minimum(LENGTHS, count), **weights},
                                fetch_list=[last])
        np.testing.assert_allclose(found, by_hand(X[:, :count], *weights.values(), np.minimum(LENGTHS, count))[1],
                                   rtol=1e-12)


def values(*names):
    return [np.array(global_scope().find_var(name).get_tensor(), "float64") for name in names]


def trained(cell, count):
    """(outputs, last states) of a cell with drawn weights, and the weights; every weight has a gradient."""
    x = static_data("x", [-1, 4, 2], "float32")
    outputs, last = layers.rnn(cell, x)
    pairs = append_backward(mean(outputs))
    assert len(pairs) == count == len(default_main_program().all_parameters())
    executor = Executor()
    executor.run(default_startup_program())
    results = executor.run(feed={"x": X.astype("float32")}, fetch_list=[outputs, last, *(grad for _, grad in pairs)])
    assert all(np.abs(one).max() > 0 for one in results[-count:])
    return results[0], results[1:-count], values(*(param.name for param, _ in pairs))


def test_a_gru_cell():
    outputs, (last,), (gate_w, gate_b, new_w, new_b) = trained(layers.GRUCell(3), 4)
    h = np.zeros((3, 3))
    for t in range(4):
        reset, update = np.split(sigmoid(np.hstack([X[:, t], h]) @ gate_w + gate_b), 2, axis=1)
        new = np.tanh(np.hstack([X[:, t], reset * h]) @ new_w + new_b)
        h = update * h + (1 - update) * new
        np.testing.assert_allclose(outputs[:, t], h, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(last, h, rtol=1e-4, atol=1e-6)


def test_an_lstm_cell():
    outputs, (hidden, cell), (weight, bias) = trained(layers.LSTMCell(3, forget_bias=0.5), 2)
    h = c = np.zeros((3, 3))
    for t in range(4):
        enter, new, forget, leave = np.split(np.hstack([X[:, t], h]) @ weight + bias, 4, axis=1)
        c = c * sigmoid(forget + 0.5) + sigmoid(enter) * np.tanh(new)
        h = np.tanh(c) * sigmoid(leave)
        np.testing.assert_allclose(outputs[:, t], h, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(cell, c, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(hidden, h, rtol=1e-4, atol=1e-6)


def test_parameters_of_a_cell_with_named_attributes_are_told_apart():
    layers.rnn(layers.GRUCell(3, param_attr="gru_w", bias_attr="gru_b"), static_data("x", [-1, 4, 2], "float32"))
    assert sorted(param.name for param in default_main_program().all_parameters()) == [
        "gru_b_candidate", "gru_b_gate", "gru_w_candidate", "gru_w_gate"]


def test_both_directions_side_by_side():
    x = static_data("x", [-1, 4, 2], "float32")
    outputs, (forward, backward) = layers.birnn(layers.GRUCell(3), layers.GRUCell(2), x)
    executor = Executor()
    executor.run(default_startup_program())
    found, first, second = executor.run(feed={"x": X.astype("float32")}, fetch_list=[outputs, forward, backward])
    assert found.shape == (3, 4, 5)
    np.testing.assert_array_equal(found[:, -1, :3], first)
    np.testing.assert_array_equal(found[:, 0, 3:], second)


def test_states_may_be_any_structure():
    class Two(layers.RNNCell):
        """Counts and sums."""

        def call(self, inputs, states, factor):
            return {"total": states["total"] + inputs * factor}, {"count": states["count"] + 1.0,
                                                                  "total": states["total"] + inputs * factor}
        state_shape = {"count": [1], "total": [2]}

    outputs, last = layers.rnn(Two(), static_data("x", [-1, 4, 2], "float32"), factor=2.0)
    x = X.astype("float32")
    found, count, total = Executor().run(feed={"x": x}, fetch_list=[outputs["total"], last["count"], last["total"]])
    np.testing.assert_allclose(found, 2 * np.cumsum(x, axis=1), rtol=1e-5)
    assert (count == 4).all()
    np.testing.assert_allclose(total, 2 * x.sum(1), rtol=1e-5)


def test_a_cell_that_loses_a_state_is_refused():
    class Lost(layers.RNNCell):
        """One of two."""

        def call(self, inputs, states):
            return inputs, states[:1]
        state_shape = [[2], [2]]

    with pytest.raises(UsageError, match="expected 2 states.*got 1"):
        layers.rnn(Lost(), static_data("x", [-1, 4, 2], "float32"))
