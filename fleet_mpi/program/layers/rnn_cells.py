"""Cells, what a recurrent network does at one step, and ``rnn``, which runs a cell over sequences of equal length."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph.structures import flatten, is_nested, map_structure, pack_like
from fleet_mpi.program.layers.manipulation import concat, slice, transpose
from fleet_mpi.program.layers.math import elementwise_mul, scale
from fleet_mpi.program.layers.recurrent_units import BasicGRUUnit, BasicLSTMUnit
from fleet_mpi.program.layers.sequence import sequence_mask
from fleet_mpi.program.layers.single_op import single_op
from fleet_mpi.program.layers.static_rnn import StaticRNN
from fleet_mpi.program.layers.tensor import fill_constant_batch_size_like, shape as shape_of

# Further than any sequence is long.
END = 2 ** 31 - 1


def initial_states(batch_ref, shape, dtype="float32", init_value=0.0, batch_dim_idx=0):
    """States of one value everywhere: a shape without batch, or a structure of such; the batch is ``batch_ref``'s."""
    if isinstance(shape, dict):
        return {key: initial_states(batch_ref, one, dtype, init_value, batch_dim_idx) for key, one in shape.items()}
    if is_nested(shape) and any(is_nested(one) for one in shape):
        return type(shape)(initial_states(batch_ref, one, dtype, init_value, batch_dim_idx) for one in shape)
    sizes = [int(size) for size in (shape if is_nested(shape) else [shape])]
    sizes = sizes if sizes[:1] == [-1] else [-1, *sizes]
    return fill_constant_batch_size_like(flatten(batch_ref)[0], sizes, dtype, init_value, batch_dim_idx)


class RNNCell:
    """Base of cells: a subclass defines ``call(inputs, states)``, which returns (outputs, new states)."""

    def call(self, inputs, states, **kwargs):
        """One step; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} defines no call(self, inputs, states)")

    def __call__(self, inputs, states, **kwargs):
        return self.call(inputs, states, **kwargs)

    def get_initial_states(self, batch_ref, shape=None, dtype="float32", init_value=0, batch_dim_idx=0):
        """States of one value everywhere, by ``shape`` or the cell's own ``state_shape``."""
        return initial_states(batch_ref, self.state_shape if shape is None else shape, dtype, init_value, batch_dim_idx)

    @property
    def state_shape(self):
        """The shape of the states without batch; subclasses define it, or give ``get_initial_states`` a shape."""
        raise NotImplementedError(f"{type(self).__name__} defines no state_shape")

    @property
    def state_dtype(self):
        """The element type of the states."""
        return "float32"


class GRUCell(RNNCell):
    """A GRU; its state is the hidden state."""

    def __init__(self, hidden_size, param_attr=None, bias_attr=None, gate_activation=None, activation=None,
                 dtype="float32", name="GRUCell"):
        self.hidden_size = hidden_size
        self.gru_unit = BasicGRUUnit(name, hidden_size, param_attr, bias_attr, gate_activation, activation, dtype)

    def call(self, inputs, states):
        """(hidden, hidden)."""
        hidden = self.gru_unit(inputs, states)
        return hidden, hidden

    @property
    def state_shape(self):
        """[hidden size]."""
        return [self.hidden_size]


class LSTMCell(RNNCell):
    """An LSTM; its states are [hidden, cell]."""

    def __init__(self, hidden_size, param_attr=None, bias_attr=None, gate_activation=None, activation=None,
                 forget_bias=1.0, dtype="float32", name="LSTMCell"):
        self.hidden_size = hidden_size
        self.lstm_unit = BasicLSTMUnit(name, hidden_size, param_attr, bias_attr, gate_activation, activation,
                                       forget_bias, dtype)

    def call(self, inputs, states):
        """(hidden, [hidden, cell])."""
        hidden, cell = self.lstm_unit(inputs, *states)
        return hidden, [hidden, cell]

    @property
    def state_shape(self):
        """[hidden size] twice."""
        return [[self.hidden_size], [self.hidden_size]]


def batch_and_time_exchanged(x):
    """The first two dimensions the other way round."""
    return transpose(x, [1, 0, *range(2, len(x.shape))])


def rnn(cell, inputs, initial_states=None, sequence_length=None, time_major=False, is_reverse=False, **kwargs):
    """(outputs of all steps, last states) of a cell over inputs [batch, steps, ...] (``time_major``: [steps, batch,
    ...]).

    Behind a sequence's own length states stay as they were. ``kwargs`` go to the cell at every step.
    """
    if initial_states is None:
        initial_states = cell.get_initial_states(batch_ref=inputs, batch_dim_idx=1 if time_major else 0)
    steps = inputs if time_major else map_structure(batch_and_time_exchanged, inputs)
    mask = None
    if sequence_length is not None:
        first = flatten(steps)[0]
        longest = slice(shape_of(first), [0], [0], [1]) if first.shape[0] < 0 else first.shape[0]
        mask = transpose(sequence_mask(sequence_length, longest, flatten(initial_states)[0].dtype), [1, 0])
    outputs, states = _over_steps(cell, steps, initial_states, mask, is_reverse, kwargs)
    last = map_structure(lambda state: _one_step(state, is_reverse), states)
    return outputs if time_major else map_structure(batch_and_time_exchanged, outputs), last


def _over_steps(cell, steps, first, mask, is_reverse, kwargs):
    loop = StaticRNN()
    loop.is_reverse = is_reverse
    with loop.step():
        now, before = map_structure(loop.step_input, steps), map_structure(lambda one: loop.memory(init=one), first)
        goes_on = None if mask is None else loop.step_input(mask)
        outputs, states = cell(now, before, **kwargs)
        if len(flatten(states)) != len(flatten(before)):
            raise UsageError(f"rnn: expected {len(flatten(before))} states from the cell, as it was given, got "
                             f"{len(flatten(states))}")
        states = pack_like(before, flatten(states))
        if goes_on is not None:
            states = map_structure(lambda new, old: _kept(new, old, goes_on), states, before)
        map_structure(loop.update_memory, before, states)
        map_structure(loop.step_output, outputs)
        map_structure(loop.step_output, states)
    results = loop.results
    count = len(flatten(outputs))
    return pack_like(outputs, results[:count]), pack_like(states, results[count:])


def _kept(new, old, goes_on):
    """The new state of sequences that go on, the old one of others."""
    return elementwise_mul(new, goes_on, axis=0) + elementwise_mul(old, scale(goes_on, -1.0, 1.0), axis=0)


def _one_step(states, is_reverse):
    """The last state of all steps."""
    begin, end = (0, 1) if is_reverse else (-1, END)
    return single_op("slice", {"Input": states}, {"axes": [0], "starts": [begin], "ends": [end], "decrease_axis": [0]})


def birnn(cell_fw, cell_bw, inputs, initial_states=None, sequence_length=None, time_major=False, **kwargs):
    """(outputs of both directions side by side, (last states forward, last states backward))."""
    first_fw, first_bw = (None, None) if initial_states is None else initial_states
    forward, last_fw = rnn(cell_fw, inputs, first_fw, sequence_length, time_major, False, **kwargs)
    backward, last_bw = rnn(cell_bw, inputs, first_bw, sequence_length, time_major, True, **kwargs)
    return map_structure(lambda one, other: concat([one, other], -1), forward, backward), (last_fw, last_bw)
