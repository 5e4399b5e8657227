"""Recurrent layers: LSTM and GRU over sequences, and single steps of both."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.ops.recurrent import NUMBERS


def dynamic_lstm(input, size, h_0=None, c_0=None, param_attr=None, bias_attr=None, use_peepholes=True,
                 is_reverse=False, gate_activation="sigmoid", cell_activation="tanh", candidate_activation="tanh",
                 dtype="float32", name=None):
    """(hidden, cell) at every row of sequences that were projected to ``size`` = 4 x hidden columns before."""
    _require_multiple("dynamic_lstm", size, 4)
    if bias_attr is False:
        raise UsageError("dynamic_lstm: bias_attr=False: expected an attribute or None, this layer always has a bias")
    helper = LayerHelper("lstm", param_attr=param_attr, bias_attr=bias_attr, name=name)
    hidden_size = size // 4
    weight = helper.create_parameter(helper.param_attr, [hidden_size, size], dtype)
    biases = (7 if use_peepholes else 4) * hidden_size
    bias = helper.create_parameter(helper.bias_attr, [1, biases], dtype, is_bias=True)
    hidden, cell, gates = (helper.create_variable_for_type_inference(dtype) for _ in range(3))
    helper.append_op("lstm", _given(Input=input, Weight=weight, Bias=bias, H0=h_0, C0=c_0),
                     {"Hidden": [hidden], "Cell": [cell], "BatchGate": [gates]},
                     {"use_peepholes": use_peepholes, "is_reverse": is_reverse, "gate_activation": gate_activation,
                      "cell_activation": cell_activation, "candidate_activation": candidate_activation})
    return hidden, cell


def dynamic_gru(input, size, param_attr=None, bias_attr=None, is_reverse=False, gate_activation="sigmoid",
                candidate_activation="tanh", h_0=None, origin_mode=False):
    """The hidden state (``size`` columns) at every row of sequences that were projected to 3 x size columns."""
    helper = LayerHelper("gru", param_attr=param_attr, bias_attr=bias_attr)
    weight = helper.create_parameter(helper.param_attr, [size, 3 * size], input.dtype)
    bias = helper.create_parameter(helper.bias_attr, [1, 3 * size], input.dtype, is_bias=True)
    hidden, gates = (helper.create_variable_for_type_inference(input.dtype) for _ in range(2))
    helper.append_op("gru", _given(Input=input, Weight=weight, Bias=bias, H0=h_0),
                     {"Hidden": [hidden], "BatchGate": [gates]},
                     {"is_reverse": is_reverse, "gate_activation": gate_activation,
                      "activation": candidate_activation, "origin_mode": origin_mode})
    return hidden


def gru_unit(input, hidden, size, param_attr=None, bias_attr=None, activation="tanh", gate_activation="sigmoid",
             origin_mode=False):
    """One step: (hidden, what the reset gate let through, gates); ``size`` is 3 x hidden, as input's columns."""
    _require_multiple("gru_unit", size, 3)
    helper = LayerHelper("gru_unit", param_attr=param_attr, bias_attr=bias_attr)
    numbers = {name: number for number, name in NUMBERS.items()}
    weight = helper.create_parameter(helper.param_attr, [size // 3, size], input.dtype)
    bias = helper.create_parameter(helper.bias_attr, [1, size], input.dtype, is_bias=True)
    gate, kept, updated = (helper.create_variable_for_type_inference(input.dtype) for _ in range(3))
    helper.append_op("gru_unit", _given(Input=input, HiddenPrev=hidden, Weight=weight, Bias=bias),
                     {"Gate": [gate], "ResetHiddenPrev": [kept], "Hidden": [updated]},
                     {"activation": numbers.get(activation, activation), "origin_mode": origin_mode,
                      "gate_activation": numbers.get(gate_activation, gate_activation)})
    return updated, kept, gate


def lstm_unit(x_t, hidden_t_prev, cell_t_prev, forget_bias=0.0, param_attr=None, bias_attr=None, name=None):
    """One step with its own weights: (hidden, cell)."""
    helper = LayerHelper("lstm_unit", name=name)
    joined = helper.create_variable_for_type_inference(x_t.dtype)
    helper.append_op("concat", {"X": [x_t, hidden_t_prev]}, {"Out": [joined]}, {"axis": 1})
    projected = fc(joined, 4 * cell_t_prev.shape[1], param_attr=param_attr, bias_attr=bias_attr)
    cell, hidden = (helper.create_variable_for_type_inference(x_t.dtype) for _ in range(2))
    helper.append_op("lstm_unit", {"X": [projected], "C_prev": [cell_t_prev]}, {"C": [cell], "H": [hidden]},
                     {"forget_bias": forget_bias})
    return hidden, cell


def rnn(cell, inputs, initial_states=None, sequence_length=None, time_major=False, is_reverse=False, **kwargs):
    """Run a cell over all steps: ``rnn_cells.rnn``, imported when it is first used."""
    from fleet_mpi.program.layers.rnn_cells import rnn as run
    return run(cell, inputs, initial_states, sequence_length, time_major, is_reverse, **kwargs)


def _given(**inputs):
    """Input slots without those that are None."""
    return {slot: [variable] for slot, variable in inputs.items() if variable is not None}


def _require_multiple(who, size, parts):
    if size % parts:
        raise UsageError(f"{who}: size: expected {parts} x the hidden size, got {size}")
