"""Recurrent layers on top of each other: 1.x (basic_gru, basic_lstm, lstm) and the classes of 2.x, against numpy."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.backward import append_backward
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import recurrent_classes as classes, stacked_rnn as layers
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.reduction import mean

rng = np.random.default_rng(17)
BATCH, STEPS, SIZE, HIDDEN = 3, 4, 2, 5
X = rng.normal(size=(BATCH, STEPS, SIZE)).astype("float32")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def x_fed(time_major=False):
    return static_data("x", [STEPS, -1, SIZE] if time_major else [-1, STEPS, SIZE], "float32")


def run(fetches, feed=None):
    """Fetched values; every parameter of the program has a gradient of the first one."""
    pairs = append_backward(mean(fetches[0]))
    assert len(pairs) == len(default_main_program().all_parameters())
    executor = Executor()
    executor.run(default_startup_program())
    found = executor.run(feed=feed or {"x": X}, fetch_list=[*fetches, *(grad for _, grad in pairs)])
    assert all(np.abs(one).max() > 0 for one in found[len(fetches):])
    return found[:len(fetches)]


def value(var):
    return np.array(global_scope().find_var(var.name).get_tensor(), "float64")


def walk(step, x, states, is_reverse=False, lengths=None):
    """(outputs, last states) of a step function over [batch, steps, size]."""
    outputs = [None] * x.shape[1]
    for t in reversed(range(x.shape[1])) if is_reverse else range(x.shape[1]):
        new = step(x[:, t], states)
        goes_on = np.ones((len(x), 1)) if lengths is None else (t < lengths)[:, None]
        outputs[t] = new[0]
        states = [np.where(goes_on, one, old) for one, old in zip(new, states)]
    return np.stack(outputs, 1), states


def lstm_step(w_ih, w_hh, b_ih, b_hh):
    def step(x, states):
        enter, forget, new, leave = np.split(x @ w_ih.T + b_ih + states[0] @ w_hh.T + b_hh, 4, axis=1)
        cell = sigmoid(forget) * states[1] + sigmoid(enter) * np.tanh(new)
        return [sigmoid(leave) * np.tanh(cell), cell]
    return step


def gru_step(w_ih, w_hh, b_ih, b_hh):
    def step(x, states):
        h = states[0]
        (xr, xz, xc), (hr, hz, hc) = np.split(x @ w_ih.T + b_ih, 3, axis=1), np.split(h @ w_hh.T + b_hh, 3, axis=1)
        new = np.tanh(xc + sigmoid(xr + hr) * hc)
        return [(h - new) * sigmoid(xz + hz) + new]
    return step


def simple_step(w_ih, w_hh, b_ih, b_hh):
    return lambda x, states: [np.tanh(x @ w_ih.T + b_ih + states[0] @ w_hh.T + b_hh)]


KINDS = {"SimpleRNN": (simple_step, 1), "GRU": (gru_step, 1), "LSTM": (lstm_step, 2)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direction, num_layers, has_lengths", [
    ("forward", 1, False), ("forward", 2, True), ("bidirect", 2, False), ("bidirectional", 1, True)])
def test_the_classes_of_2x_are_their_formulas(kind, direction, num_layers, has_lengths):
    make_step, count = KINDS[kind]
    layer = getattr(classes, kind)(SIZE, HIDDEN, num_layers, direction)
    lengths = static_data("lengths", [-1], "int64") if has_lengths else None
    outputs, states = layer(x_fed(), sequence_length=lengths)
    states = [states] if count == 1 else list(states)
    given = np.array([4, 2, 3])
    found = run([outputs, *states], {"x": X, **({"lengths": given} if has_lengths else {})})
    steps = [make_step(*(value(one) for one in (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)))
             for cell in layer.cells]
    x, last, directions = X.astype("float64"), [], layer.num_directions
    for number in range(num_layers):
        parts = []
        for turned in range(directions):
            out, end = walk(steps[number * directions + turned], x, [np.zeros((BATCH, HIDDEN))] * count, turned == 1,
                            given if has_lengths else None)
            parts.append(out)
            last.append(end)
        x = np.concatenate(parts, -1)
    np.testing.assert_allclose(found[0], x, rtol=1e-4, atol=1e-6)
    for i in range(count):
        np.testing.assert_allclose(found[1 + i], np.stack([one[i] for one in last]), rtol=1e-4, atol=1e-6)


def test_first_states_and_steps_in_front():
    layer = classes.LSTM(SIZE, HIDDEN, 2, time_major=True)
    h, c = (static_data(name, [2, BATCH, HIDDEN], "float32") for name in "hc")
    outputs, (hidden, _) = layer(x_fed(time_major=True), (h, c))
    first = {name: rng.normal(size=(2, BATCH, HIDDEN)).astype("float32") for name in "hc"}
    found, end = run([outputs, hidden], {"x": X.transpose(1, 0, 2), **first})
    x = X
    for number, cell in enumerate(layer.cells):
        step = lstm_step(*(value(one) for one in (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)))
        x, last = walk(step, x, [first["h"][number], first["c"][number]])
        np.testing.assert_allclose(end[number], last[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found, x.transpose(1, 0, 2), rtol=1e-4, atol=1e-6)


def test_rnn_and_birnn_take_any_cell():
    forward, backward = classes.SimpleRNNCell(SIZE, HIDDEN, "relu"), classes.GRUCell(SIZE, HIDDEN)
    outputs, (first, second) = classes.BiRNN(forward, backward)(x_fed())
    alone, _ = classes.RNN(backward, is_reverse=True)(x_fed())
    both, again, one, other = run([outputs, alone, first, second])
    np.testing.assert_allclose(both[..., HIDDEN:], again, rtol=1e-6)
    np.testing.assert_allclose(both[:, -1, :HIDDEN], one)
    np.testing.assert_allclose(both[:, 0, HIDDEN:], other)


def test_one_step_of_a_cell_has_states_of_zeros_unless_they_are_given():
    cell = classes.LSTMCell(SIZE, HIDDEN)
    hidden, (same, _) = cell(static_data("row", [-1, SIZE], "float32"))
    executor = Executor()
    executor.run(default_startup_program())
    first, second = executor.run(feed={"row": X[:, 0]}, fetch_list=[hidden, same])
    np.testing.assert_array_equal(first, second)
    assert first.shape == (BATCH, HIDDEN) and "2, 5" in repr(cell)


def test_wrong_words_are_refused():
    with pytest.raises(UsageError, match="'backwards'"):
        classes.GRU(SIZE, HIDDEN, direction="backwards")
    with pytest.raises(UsageError, match="'tanh' or 'relu'"):
        classes.SimpleRNN(SIZE, HIDDEN, activation="sigmoid")
    with pytest.raises(UsageError, match="positive"):
        classes.LSTMCell(SIZE, 0)


@pytest.mark.parametrize("bidirectional, layers_", [(False, 1), (True, 2)])
def test_basic_gru_and_basic_lstm_have_the_shapes_and_parameters_of_the_original(bidirectional, layers_):
    directions = 2 if bidirectional else 1
    states = [static_data(name, [layers_ * directions, BATCH, HIDDEN], "float32") for name in "ghc"]
    out, last = layers.basic_gru(x_fed(), states[0], HIDDEN, layers_, bidirectional=bidirectional, param_attr="p",
                                 bias_attr="q")
    lstm_out, hidden, cell = layers.basic_lstm(x_fed(), states[1], states[2], HIDDEN, layers_,
                                               bidirectional=bidirectional)
    feed = {name: np.zeros((layers_ * directions, BATCH, HIDDEN), "float32") for name in "ghc"}
    found = run([out + lstm_out, out, last, hidden, cell], {"x": X, **feed})
    assert found[1].shape == (BATCH, STEPS, HIDDEN * directions)
    assert all(one.shape == (layers_ * directions, BATCH, HIDDEN) for one in found[2:])
    np.testing.assert_allclose(found[2][-directions], found[1][:, -1, :HIDDEN])
    names = {param.name for param in default_main_program().all_parameters()}
    assert {"p_fw_w_0_gate", "p_fw_w_0_candidate", "q_fw_b_0_gate", "q_fw_b_0_candidate"} <= names
    assert ("p_bw_w_1_gate" in names) == bidirectional


def test_basic_lstm_without_first_states_and_with_dropout():
    out, _, _ = layers.basic_lstm(x_fed(), None, None, HIDDEN, 2, dropout_prob=0.5,
                                  sequence_length=static_data("lengths", [-1], "int64"))
    found, = run([out], {"x": X, "lengths": np.array([4, 1, 2])})
    assert found.shape == (BATCH, STEPS, HIDDEN)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_lstm_keeps_all_weights_in_one_parameter(bidirectional):
    directions = 2 if bidirectional else 1
    h, c = (static_data(name, [2 * directions, BATCH, HIDDEN], "float32") for name in "hc")
    outputs, hidden, cell = layers.lstm(x_fed(time_major=True), h, c, STEPS, HIDDEN, 2, is_bidirec=bidirectional)
    first = {name: rng.normal(size=(2 * directions, BATCH, HIDDEN)).astype("float32") for name in "hc"}
    found, end, end_cell = run([outputs, hidden, cell], {"x": X.transpose(1, 0, 2), **first})
    weight, = default_main_program().all_parameters()
    flat, begin, matrices = value(weight), 0, []
    for width in [SIZE] * directions + [HIDDEN * directions] * directions:
        for columns in (width, HIDDEN):
            matrices.append(flat[begin:begin + 4 * HIDDEN * columns].reshape(4 * HIDDEN, columns))
            begin += 4 * HIDDEN * columns
    biases = flat[begin:].reshape(-1, 4 * HIDDEN)
    assert len(biases) == len(matrices)
    x = X
    for number in range(2):
        parts = []
        for turned in range(directions):
            i = number * directions + turned
            out, last = walk(lstm_step(matrices[2 * i], matrices[2 * i + 1], biases[2 * i], biases[2 * i + 1]), x,
                             [first["h"][i], first["c"][i]], turned == 1)
            parts.append(out)
            np.testing.assert_allclose(end[i], last[0], rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(end_cell[i], last[1], rtol=1e-4, atol=1e-6)
        x = np.concatenate(parts, -1)
    np.testing.assert_allclose(found, x.transpose(1, 0, 2), rtol=1e-4, atol=1e-6)
