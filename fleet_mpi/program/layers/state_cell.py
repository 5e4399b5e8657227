"""Named states of a recurrent cell that a decoder keeps from step to step: ``contrib.decoder`` of 1.x.

A decoder is whatever has ``memory_of(init)``, which gives a memory: ``now``, the state at this step, and
``keep(value)``.
"""

from fleet_mpi.errors import UsageError, nearest
from fleet_mpi.program.layers.tensor import fill_constant_batch_size_like


class InitState:
    """What a state is at the first step: a variable, or a constant with as many rows as ``init_boot``."""

    def __init__(self, init=None, shape=None, value=0.0, init_boot=None, need_reorder=False, dtype="float32"):
        if init is None and init_boot is None:
            raise UsageError("InitState: expected init, or init_boot for the number of rows, got neither")
        self._init = init if init is not None else fill_constant_batch_size_like(init_boot, shape, dtype, value)
        self._need_reorder = need_reorder

    @property
    def value(self):
        """The variable."""
        return self._init

    @property
    def need_reorder(self):
        """Whether its rows are in the order of the sentences, not of their lengths."""
        return self._need_reorder


class StateCell:
    """States and step inputs by name, and a function that makes the states of the next step::

        cell = StateCell(inputs={"x": None}, states={"h": InitState(init=context)}, out_state="h")

        @cell.state_updater
        def updater(cell):
            cell.set_state("h", layers.fc([cell.get_input("x"), cell.get_state("h")], size, act="tanh"))
    """

    def __init__(self, inputs, states, out_state, name=None):
        wrong = [key for key, one in states.items() if not isinstance(one, InitState)]
        if wrong or out_state not in states:
            raise UsageError(f"StateCell: expected states that are InitStates, and one of them as out_state; got "
                             f"{wrong or out_state!r}")
        self._inputs, self._initial, self._out_state = dict(inputs), dict(states), out_state
        self._states, self._memories = dict(states), {}
        self._decoder = self._updater = None

    def _enter_decoder(self, decoder):
        if self._decoder is not None:
            raise UsageError("StateCell: it is in a decoder whose block has not ended; make a cell for each decoder")
        self._decoder = decoder

    def _leave_decoder(self):
        self._decoder, self._memories, self._states = None, {}, dict(self._initial)

    def _begin(self):
        """Let the decoder have a memory for every state, when the first of them is asked for."""
        if self._decoder is not None and not self._memories:
            self._memories = {name: self._decoder.memory_of(init) for name, init in self._initial.items()}
            self._states = {name: memory.now for name, memory in self._memories.items()}

    @property
    def _state_names(self):
        return list(self._initial)

    def get_state(self, state_name):
        """The state of this step, or what ``set_state`` made of it."""
        self._begin()
        return _named(self._states, state_name, "state")

    def get_input(self, input_name):
        """The step input of this name."""
        found = _named(self._inputs, input_name, "input")
        if found is None:
            raise UsageError(f"StateCell.get_input: {input_name!r} has no value yet; give it to compute_state")
        return found

    def set_state(self, state_name, state_value):
        """Let a state be this from now on within the step."""
        _named(self._states, state_name, "state")
        self._states[state_name] = state_value

    def state_updater(self, updater):
        """Decorator: the function that computes the next states, given the cell."""
        self._updater = updater
        return updater

    def compute_state(self, inputs):
        """Take this step's inputs by name, and compute the states of the next step."""
        self._begin()
        for name, value in inputs.items():
            _named(self._inputs, name, "input")
            self._inputs[name] = value
        if self._updater is None:
            raise UsageError("StateCell.compute_state: there is no state_updater")
        self._updater(self)

    def update_states(self):
        """Let the next step begin with the states as they are now."""
        self._begin()
        for name, memory in self._memories.items():
            memory.keep(self._states[name])

    def out_state(self):
        """The state that words are told by."""
        return self.get_state(self._out_state)


def _named(held, name, kind):
    if name not in held:
        raise UsageError(f"StateCell has no {kind} {name!r}; {nearest(name, held)}")
    return held[name]
