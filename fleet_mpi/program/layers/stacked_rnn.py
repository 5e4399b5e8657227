"""Several recurrent layers, one or both directions, on top of each other: basic_gru, basic_lstm, lstm."""

from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.graph.structures import flatten, pack_like
from fleet_mpi.program.layers import activation
from fleet_mpi.program.layers.manipulation import concat, reshape, slice, split, stack, unstack
from fleet_mpi.program.layers.math import elementwise_add, matmul
from fleet_mpi.program.layers.nn import dropout
from fleet_mpi.program.layers.recurrent_units import named_apart
from fleet_mpi.program.layers.rnn_cells import GRUCell, LSTMCell, RNNCell, rnn


def over_layers(cells, inputs, first=None, sequence_length=None, time_major=False, between=None):
    """(outputs, last states by layer and direction) of ``cells[layer]``, a list of one cell, or of two, the second
    backward.

    ``first`` are as many states; ``between`` is applied to the outputs of every layer but the last.
    """
    last = []
    for number, some in enumerate(cells):
        found = []
        for direction, cell in enumerate(some):
            state = None if first is None else first[len(last)]
            outputs, state = rnn(cell, inputs, state, sequence_length, time_major, is_reverse=direction == 1)
            found.append(outputs)
            last.append(state)
        inputs = found[0] if len(found) == 1 else concat(found, -1)
        if between is not None and number < len(cells) - 1:
            inputs = between(inputs)
    return inputs, last


def states_of(given, count):
    """The states of each layer and direction: ``given`` are variables [layers x directions, batch, size]."""
    parts = [unstack(one, axis=0, num=count) for one in flatten(given)]
    return [pack_like(given, some) for some in zip(*parts)]


def states_joined(last):
    """The variables [layers x directions, batch, size] of each layer's and direction's states."""
    return pack_like(last[0], [stack(list(some), axis=0) for some in zip(*map(flatten, last))])


def _named(attr, direction, kind, number):
    return named_apart(attr, f"{('fw', 'bw')[direction]}_{kind}_{number}")


def _basic(make, input, first, num_layers, sequence_length, dropout_prob, bidirectional, batch_first, attrs):
    """(outputs, last states); ``make(param_attr, bias_attr)`` gives a cell."""
    directions = 2 if bidirectional else 1
    cells = [[make(_named(attrs[0], direction, "w", number), _named(attrs[1], direction, "b", number))
              for direction in range(directions)] for number in range(num_layers)]
    between = None if not dropout_prob else lambda x: dropout(x, dropout_prob,
                                                              dropout_implementation="upscale_in_train")
    first = None if first is None else states_of(first, num_layers * directions)
    outputs, last = over_layers(cells, input, first, sequence_length, not batch_first, between)
    return outputs, states_joined(last)


def basic_gru(input, init_hidden, hidden_size, num_layers=1, sequence_length=None, dropout_prob=0.0,
              bidirectional=False,
              batch_first=True, param_attr=None, bias_attr=None, gate_activation=None, activation=None, dtype="float32",
              name="basic_gru"):
    """(outputs, last hidden states [layers x directions, batch, hidden_size]) of GRUs on top of each other."""
    return _basic(lambda w, b: GRUCell(hidden_size, w, b, gate_activation, activation, dtype, name), input, init_hidden,
                  num_layers, sequence_length, dropout_prob, bidirectional, batch_first, (param_attr, bias_attr))


def basic_lstm(input, init_hidden, init_cell, hidden_size, num_layers=1, sequence_length=None, dropout_prob=0.0,
               bidirectional=False, batch_first=True, param_attr=None, bias_attr=None, gate_activation=None,
               activation=None, forget_bias=1.0, dtype="float32", name="basic_lstm"):
    """(outputs, last hidden states, last cell states) of LSTMs on top of each other."""
    first = None if init_hidden is None or init_cell is None else [init_hidden, init_cell]
    outputs, (hidden, cell) = _basic(
        lambda w, b: LSTMCell(hidden_size, w, b, gate_activation, activation, forget_bias, dtype, name), input, first,
        num_layers, sequence_length, dropout_prob, bidirectional, batch_first, (param_attr, bias_attr))
    return outputs, hidden, cell


class _GivenLSTM(RNNCell):
    """An LSTM whose weights are parts of one parameter; gates: input, forget, candidate, output."""

    def __init__(self, of_input, of_hidden, bias):
        self.of_input, self.of_hidden, self.bias = of_input, of_hidden, bias

    def call(self, inputs, states):
        """(hidden, [hidden, cell])."""
        gates = matmul(inputs, self.of_input, transpose_y=True) + matmul(states[0], self.of_hidden, transpose_y=True)
        enters, forgets, new, leaves = split(elementwise_add(gates, self.bias, axis=1), 4, dim=-1)
        cell = (activation.sigmoid(forgets) * states[1] + activation.sigmoid(enters) * activation.tanh(new))
        hidden = activation.sigmoid(leaves) * activation.tanh(cell)
        return hidden, [hidden, cell]


def lstm(input, init_h, init_c, max_len, hidden_size, num_layers, dropout_prob=0.0, is_bidirec=False, is_test=False,
         name=None, default_initializer=None, seed=-1):
    """(outputs, last hidden, last cell states) of LSTMs over [steps, batch, size], all weights in one parameter.

    In it all matrices come first, for each layer and direction those of the input and of the hidden state, then, in the
    same order, their biases. ``max_len`` has no effect: steps are those of the input.
    """
    helper = LayerHelper("cudnn_lstm", name=name)
    directions, sizes = 2 if is_bidirec else 1, []
    for number in range(num_layers):
        width = input.shape[-1] if number == 0 else hidden_size * directions
        sizes += [(4 * hidden_size, width), (4 * hidden_size, hidden_size)] * directions
    total = sum(rows * columns for rows, columns in sizes) + len(sizes) * 4 * hidden_size
    weight = helper.create_parameter(helper.param_attr, [total], input.dtype, default_initializer=default_initializer)
    cells = _cells_within(weight, sizes, hidden_size)
    cells = [cells[i:i + directions] for i in range(0, len(cells), directions)]
    between = None if not dropout_prob else lambda x: dropout(
        x, dropout_prob, is_test, seed if seed > 0 else None, dropout_implementation="upscale_in_train")
    outputs, last = over_layers(cells, input, states_of([init_h, init_c], num_layers * directions), None, True, between)
    return (outputs, *states_joined(last))


def _cells_within(weight, sizes, hidden_size):
    """The cells of all layers and directions, on parts of one parameter."""
    parts, begin = [], 0
    for rows, columns in [*sizes, *[(4 * hidden_size, 0)] * len(sizes)]:
        count = rows * columns if columns else rows
        part = slice(weight, [0], [begin], [begin + count])
        parts.append(reshape(part, [rows, columns]) if columns else part)
        begin += count
    matrices, biases = parts[:len(sizes)], parts[len(sizes):]
    return [_GivenLSTM(matrices[i], matrices[i + 1], biases[i] + biases[i + 1]) for i in range(0, len(matrices), 2)]
