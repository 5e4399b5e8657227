"""Recurrent layers of ``paddle.nn`` in static programs: cells, RNN, BiRNN, SimpleRNN, LSTM, GRU."""

import math

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.initializers import Uniform
from fleet_mpi.program.layers import activation as activations
from fleet_mpi.program.layers.layer import Layer
from fleet_mpi.program.layers.layer_containers import LayerList
from fleet_mpi.program.layers.manipulation import split
from fleet_mpi.program.layers.math import elementwise_add, matmul
from fleet_mpi.program.layers.nn import dropout
from fleet_mpi.program.layers.rnn_cells import birnn, initial_states, rnn
from fleet_mpi.program.layers.stacked_rnn import over_layers, states_joined, states_of


class RNNCellBase(Layer):
    """Base of cells: ``forward(inputs, states)`` returns (outputs, new states)."""

    def get_initial_states(self, batch_ref, shape=None, dtype=None, init_value=0.0, batch_dim_idx=0):
        """States of one value everywhere, by ``shape`` or the cell's own ``state_shape``."""
        return initial_states(batch_ref, self.state_shape if shape is None else shape, dtype or "float32", init_value,
                              batch_dim_idx)


class _GatedCell(RNNCellBase):
    """Weights [gates x hidden_size, ...] of the input and of the hidden state, and their biases."""

    gates = 1

    def __init__(self, input_size, hidden_size, weight_ih_attr=None, weight_hh_attr=None, bias_ih_attr=None,
                 bias_hh_attr=None, name=None):
        super().__init__()
        if hidden_size <= 0:
            raise UsageError(f"{type(self).__name__}: hidden_size: expected a positive size, got {hidden_size}")
        drawn, rows = Uniform(-1.0 / math.sqrt(hidden_size), 1.0 / math.sqrt(hidden_size)), self.gates * hidden_size
        self.weight_ih = self.create_parameter([rows, input_size], weight_ih_attr, default_initializer=drawn)
        self.weight_hh = self.create_parameter([rows, hidden_size], weight_hh_attr, default_initializer=drawn)
        self.bias_ih = self.create_parameter([rows], bias_ih_attr, is_bias=True, default_initializer=drawn)
        self.bias_hh = self.create_parameter([rows], bias_hh_attr, is_bias=True, default_initializer=drawn)
        self.input_size, self.hidden_size = input_size, hidden_size

    def _products(self, inputs, hidden):
        """What input and hidden state bring, each with its bias."""
        found = []
        for values, weight, bias in ((inputs, self.weight_ih, self.bias_ih), (hidden, self.weight_hh, self.bias_hh)):
            product = matmul(values, weight, transpose_y=True)
            found.append(product if bias is None else elementwise_add(product, bias, axis=1))
        return found

    @property
    def state_shape(self):
        """(hidden_size,)."""
        return (self.hidden_size,)

    def extra_repr(self):
        """The two sizes."""
        return f"{self.input_size}, {self.hidden_size}"


class SimpleRNNCell(_GatedCell):
    """activation(input and hidden state, weighted)."""

    def __init__(self, input_size, hidden_size, activation="tanh", weight_ih_attr=None, weight_hh_attr=None,
                 bias_ih_attr=None, bias_hh_attr=None, name=None):
        super().__init__(input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr, name)
        if activation not in ("tanh", "relu"):
            raise UsageError(f"SimpleRNNCell: activation: expected 'tanh' or 'relu', got {activation!r}")
        self.activation = activation

    def forward(self, inputs, states=None):
        """(hidden, hidden)."""
        before = self.get_initial_states(inputs) if states is None else states
        of_input, of_hidden = self._products(inputs, before)
        hidden = getattr(activations, self.activation)(of_input + of_hidden)
        return hidden, hidden


class LSTMCell(_GatedCell):
    """Gates: input, forget, candidate, output; states are (hidden, cell)."""

    gates = 4

    def forward(self, inputs, states=None):
        """(hidden, (hidden, cell))."""
        before, cell = self.get_initial_states(inputs) if states is None else states
        of_input, of_hidden = self._products(inputs, before)
        enters, forgets, new, leaves = split(of_input + of_hidden, 4, dim=-1)
        cell = activations.sigmoid(forgets) * cell + activations.sigmoid(enters) * activations.tanh(new)
        hidden = activations.sigmoid(leaves) * activations.tanh(cell)
        return hidden, (hidden, cell)

    @property
    def state_shape(self):
        """Of the hidden and the cell state."""
        return ((self.hidden_size,), (self.hidden_size,))


class GRUCell(_GatedCell):
    """Gates: reset, update, candidate; the reset gate acts on what the hidden state brings."""

    gates = 3

    def forward(self, inputs, states=None):
        """(hidden, hidden)."""
        before = self.get_initial_states(inputs) if states is None else states
        of_input, of_hidden = self._products(inputs, before)
        (x_reset, x_update, x_new), (h_reset, h_update, h_new) = split(of_input, 3, dim=-1), split(of_hidden, 3, dim=-1)
        reset, update = activations.sigmoid(x_reset + h_reset), activations.sigmoid(x_update + h_update)
        new = activations.tanh(x_new + reset * h_new)
        hidden = (before - new) * update + new
        return hidden, hidden


class RNN(Layer):
    """A cell over all steps of [batch, steps, ...]."""

    def __init__(self, cell, is_reverse=False, time_major=False):
        super().__init__()
        self.cell, self.is_reverse, self.time_major = cell, is_reverse, time_major

    def forward(self, inputs, initial_states=None, sequence_length=None, **kwargs):
        """(outputs, last states)."""
        return rnn(self.cell, inputs, initial_states, sequence_length, self.time_major, self.is_reverse, **kwargs)


class BiRNN(Layer):
    """Two cells over all steps, one from the end."""

    def __init__(self, cell_fw, cell_bw, time_major=False):
        super().__init__()
        self.cell_fw, self.cell_bw, self.time_major = cell_fw, cell_bw, time_major

    def forward(self, inputs, initial_states=None, sequence_length=None, **kwargs):
        """(outputs side by side, (last states forward, last states backward))."""
        return birnn(self.cell_fw, self.cell_bw, inputs, initial_states, sequence_length, self.time_major, **kwargs)


class _Stacked(Layer):
    """Layers of cells on top of each other; a subclass says which cell."""

    cell_class, cell_options = None, {}

    def __init__(self, input_size, hidden_size, num_layers=1, direction="forward", time_major=False, dropout=0.0,
                 weight_ih_attr=None, weight_hh_attr=None, bias_ih_attr=None, bias_hh_attr=None, name=None):
        super().__init__()
        if direction not in ("forward", "bidirect", "bidirectional"):
            raise UsageError(f"{type(self).__name__}: direction: expected 'forward' or 'bidirect' (or "
                             f"'bidirectional'), got {direction!r}")
        self.num_directions = 1 if direction == "forward" else 2
        self.num_layers, self.hidden_size, self.time_major, self.dropout = num_layers, hidden_size, time_major, dropout
        self.cells = LayerList([
            self.cell_class(input_size if number == 0 else hidden_size * self.num_directions, hidden_size,
                            weight_ih_attr=weight_ih_attr, weight_hh_attr=weight_hh_attr, bias_ih_attr=bias_ih_attr,
                            bias_hh_attr=bias_hh_attr, **self.cell_options)
            for number in range(num_layers) for _ in range(self.num_directions)])

    def forward(self, inputs, initial_states=None, sequence_length=None):
        """(outputs, last states [layers x directions, batch, hidden_size]; of LSTM a pair)."""
        cells = list(self.cells)
        layers = [cells[i:i + self.num_directions] for i in range(0, len(cells), self.num_directions)]
        first = None if initial_states is None else states_of(initial_states, len(cells))
        outputs, last = over_layers(layers, inputs, first, sequence_length, self.time_major,
                                    self._dropped if self.dropout else None)
        return outputs, states_joined(last)

    def _dropped(self, x):
        return dropout(x, self.dropout, not self.training, dropout_implementation="upscale_in_train")


class SimpleRNN(_Stacked):
    """SimpleRNNCells on top of each other."""

    cell_class = SimpleRNNCell

    def __init__(self, input_size, hidden_size, num_layers=1, direction="forward", time_major=False, dropout=0.0,
                 activation="tanh", weight_ih_attr=None, weight_hh_attr=None, bias_ih_attr=None, bias_hh_attr=None,
                 name=None):
        self.__dict__["cell_options"] = {"activation": activation}
        super().__init__(input_size, hidden_size, num_layers, direction, time_major, dropout, weight_ih_attr,
                         weight_hh_attr, bias_ih_attr, bias_hh_attr, name)


class LSTM(_Stacked):
    """LSTMCells on top of each other."""

    cell_class = LSTMCell


class GRU(_Stacked):
    """GRUCells on top of each other."""

    cell_class = GRUCell
