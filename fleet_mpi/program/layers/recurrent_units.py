"""One step of a GRU or LSTM with weights of its own, made when it is first called (``fluid.contrib.layers``)."""

import copy

from fleet_mpi.program.build.param_attr import as_param_attr
from fleet_mpi.program.layers import activation as activations
from fleet_mpi.program.layers.layer import Layer
from fleet_mpi.program.layers.manipulation import concat, split
from fleet_mpi.program.layers.math import elementwise_add, matmul, scale


def named_apart(attr, ending):
    """The same attribute for another parameter: where it has a name, with an ending."""
    attr = copy.copy(as_param_attr(attr))
    if attr is not False and attr.name is not None:
        attr.name = f"{attr.name}_{ending}"
    return attr


class _Unit(Layer):
    """Sizes, attributes and activations."""

    def __init__(self, name_scope, hidden_size, param_attr, bias_attr, gate_activation, activation, dtype):
        super().__init__(name_scope, dtype)
        self.hidden_size, self.param_attr, self.bias_attr = hidden_size, param_attr, bias_attr
        self.gate = gate_activation or activations.sigmoid
        self.activation = activation or activations.tanh
        self.is_built = False

    def _weights(self, rows, columns, ending):
        weight_attr, bias_attr = self.param_attr, self.bias_attr
        if ending:
            weight_attr, bias_attr = named_apart(weight_attr, ending), named_apart(bias_attr, ending)
        return (self.create_parameter([rows, columns], weight_attr),
                self.create_parameter([columns], bias_attr, is_bias=True))

    def build(self, input_size):
        """Make the weights, once; subclasses say which."""
        if not self.is_built:
            self.is_built = True
            self.make_weights(input_size + self.hidden_size)


def _projected(parts, weight, bias):
    product = matmul(concat(parts, 1), weight)
    return product if bias is None else elementwise_add(product, bias, axis=1)


class BasicGRUUnit(_Unit):
    """One step of a GRU: the new hidden state of ``unit(input, pre_hidden)``."""

    def __init__(self, name_scope, hidden_size, param_attr=None, bias_attr=None, gate_activation=None, activation=None,
                 dtype="float32"):
        super().__init__(name_scope, hidden_size, param_attr, bias_attr, gate_activation, activation, dtype)

    def make_weights(self, rows):
        """Of the two gates, and of the candidate."""
        self.gate_weight, self.gate_bias = self._weights(rows, 2 * self.hidden_size, "gate")
        self.candidate_weight, self.candidate_bias = self._weights(rows, self.hidden_size, "candidate")

    def forward(self, input, pre_hidden):
        """The new hidden state."""
        self.build(input.shape[-1])
        gates = self.gate(_projected([input, pre_hidden], self.gate_weight, self.gate_bias))
        reset, update = split(gates, 2, dim=1)
        candidate = self.activation(_projected([input, reset * pre_hidden], self.candidate_weight, self.candidate_bias))
        return update * pre_hidden + (1.0 - update) * candidate


class BasicLSTMUnit(_Unit):
    """One step of an LSTM: the new (hidden, cell) of ``unit(input, pre_hidden, pre_cell)``."""

    def __init__(self, name_scope, hidden_size, param_attr=None, bias_attr=None, gate_activation=None, activation=None,
                 forget_bias=1.0, dtype="float32"):
        super().__init__(name_scope, hidden_size, param_attr, bias_attr, gate_activation, activation, dtype)
        self.forget_bias = forget_bias

    def make_weights(self, rows):
        """One matrix; columns: input gate, candidate, forget gate, output gate."""
        self.weight, self.bias = self._weights(rows, 4 * self.hidden_size, None)

    def forward(self, input, pre_hidden, pre_cell):
        """The new hidden and cell state."""
        self.build(input.shape[-1])
        enters, candidate, forgets, leaves = split(_projected([input, pre_hidden], self.weight, self.bias), 4, dim=-1)
        cell = (pre_cell * self.gate(scale(forgets, bias=self.forget_bias))
                + self.gate(enters) * self.activation(candidate))
        return self.activation(cell) * self.gate(leaves), cell
