"""Decoders over a StateCell: one that learns sentences word by word, one that searches for them with a beam."""

from contextlib import contextmanager

from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers.activation import log
from fleet_mpi.program.layers.beam_search import beam_search, beam_search_decode
from fleet_mpi.program.layers.comparison import is_empty, less_than
from fleet_mpi.program.layers.control_flow import Switch, While
from fleet_mpi.program.layers.dense import fc
from fleet_mpi.program.layers.dynamic_rnn import DynamicRNN, around, require_outside
from fleet_mpi.program.layers.embedding import embedding
from fleet_mpi.program.layers.manipulation import reshape, topk
from fleet_mpi.program.layers.math import elementwise_add, increment
from fleet_mpi.program.layers.sequence import lod_reset, sequence_expand
from fleet_mpi.program.layers.tensor import fill_constant
from fleet_mpi.program.layers.tensor_array import array_read, array_write


class _Decoder:
    """A block that is written once, with a cell whose states it keeps from step to step."""

    def __init__(self, state_cell):
        self._state_cell, self._stage = state_cell, "before"
        state_cell._enter_decoder(self)

    @contextmanager
    def _stages(self):
        if self._stage != "before":
            raise UsageError(f"{type(self).__name__}.block: it can be entered once")
        self._stage = "inside"
        yield
        self._stage = "after"
        self._state_cell._leave_decoder()

    def _require(self, stage, what):
        if self._stage != stage:
            place = "within" if stage == "inside" else "behind"
            raise UsageError(f"{type(self).__name__}: {what} belongs {place} its `with decoder.block():`")

    @property
    def state_cell(self):
        """The cell, within the block."""
        self._require("inside", "state_cell")
        return self._state_cell


class _RnnMemory:
    """A state that a DynamicRNN keeps."""

    def __init__(self, rnn, init):
        self.rnn, self.now = rnn, rnn.memory(init=init.value, need_reorder=init.need_reorder)

    def keep(self, value):
        """Let the next step begin with this."""
        self.rnn.update_memory(self.now, value)


class TrainingDecoder(_Decoder):
    """The cell at every word of given sentences::

        decoder = TrainingDecoder(cell)
        with decoder.block():
            decoder.state_cell.compute_state(inputs={"x": decoder.step_input(words)})
            decoder.output(layers.fc(decoder.state_cell.get_state("h"), size=1000, act="softmax"))
            decoder.state_cell.update_states()
        predictions = decoder()
    """

    def __init__(self, state_cell, name=None):
        super().__init__(state_cell)
        self._dynamic_rnn = DynamicRNN(name)

    @contextmanager
    def block(self):
        """One step."""
        with self._stages(), self._dynamic_rnn.block():
            yield

    @property
    def dynamic_rnn(self):
        """The loop over the words."""
        return self._dynamic_rnn

    def memory_of(self, init):
        """A memory for a state."""
        return _RnnMemory(self._dynamic_rnn, init)

    def step_input(self, x):
        """The words of this step."""
        return self._dynamic_rnn.step_input(x)

    def static_input(self, x):
        """What is the same at all steps."""
        return self._dynamic_rnn.static_input(x)

    def output(self, *outputs):
        """Let the values of all steps be results."""
        self._dynamic_rnn.output(*outputs)

    def __call__(self, *args, **kwargs):
        """The results."""
        self._require("after", "the result")
        return self._dynamic_rnn(*args, **kwargs)


class _ArrayMemory:
    """A state in an array with a place for every step."""

    def __init__(self, decoder, init):
        self.decoder, self.now = decoder, decoder.read_array(init.value)

    def keep(self, value):
        """Let the next step begin with this."""
        self.decoder.update_array(self.now, value)


class BeamSearchDecoder(_Decoder):
    """The best ``beam_size`` sentences that the cell leads to from the words ``init_ids``::

        decoder = BeamSearchDecoder(cell, init_ids, init_scores, target_dict_dim=1000, word_dim=32, beam_size=2)
        decoder.decode()
        sentence_ids, sentence_scores = decoder()

    ``decode`` may be overridden by a step of one's own. ``input_var_dict`` are step inputs of the cell that stay as
    they are but for the beams; the word is what all other inputs get.
    """

    def __init__(self, state_cell, init_ids, init_scores, target_dict_dim, word_dim, input_var_dict=None, topk_size=50,
                 sparse_emb=True, max_len=100, beam_size=1, end_id=1, name=None):
        super().__init__(state_cell)
        self._init_ids, self._init_scores = init_ids, init_scores
        self._target_dict_dim, self._word_dim, self._sparse_emb = target_dict_dim, word_dim, sparse_emb
        self._input_var_dict, self._topk_size = dict(input_var_dict or {}), topk_size
        self._beam_size, self._end_id = beam_size, end_id
        self._counter, self._max_len = fill_constant([1], "int64", 0), fill_constant([1], "int64", max_len)
        self._first = fill_constant([1], "int64", 0)
        self._cond = less_than(self._counter, self._max_len)
        self._arrays, self._links, self._ids_array, self._scores_array = {}, [], None, None

    @contextmanager
    def block(self):
        """One step; what ``update_array`` was given is written behind it, unless the step stops early."""
        with self._stages(), While(self._cond).block():
            self._body = default_main_program().current_block()
            yield
            with Switch() as switch, switch.case(self._cond):
                increment(self._counter)
                for array, value in self._links:
                    array_write(value, self._counter, array)
                less_than(self._counter, self._max_len, cond=self._cond)

    def early_stop(self):
        """Let this step be the last."""
        fill_constant([1], "bool", 0, out=self._cond)

    def memory_of(self, init):
        """A memory for a state."""
        return _ArrayMemory(self, init)

    def read_array(self, init, is_ids=False, is_scores=False):
        """What ``update_array`` kept at the step before; at the first step ``init``."""
        self._require("inside", "read_array")
        if is_ids and is_scores:
            raise UsageError("BeamSearchDecoder.read_array: expected is_ids or is_scores, got both")
        _require_variable(init, "read_array", "init")
        require_outside(self._body, init, "BeamSearchDecoder.read_array")
        with around(self._body):
            array = array_write(init, self._first)
        self._ids_array = array if is_ids else self._ids_array
        self._scores_array = array if is_scores else self._scores_array
        value = array_read(array, self._counter)
        self._arrays[value.name] = array
        return value

    def update_array(self, array, value):
        """Let what ``read_array`` gave be this at the next step."""
        self._require("inside", "update_array")
        _require_variable(array, "update_array", "array")
        _require_variable(value, "update_array", "value")
        if array.name not in self._arrays:
            raise UsageError(f"BeamSearchDecoder.update_array: {array.name!r} does not come from read_array")
        self._links.append((self._arrays[array.name], value))

    def decode(self):
        """Write the step: the words of the step before, the cell, the best continuations."""
        with self.block():
            ids = self.read_array(self._init_ids, is_ids=True)
            scores = self.read_array(self._init_scores, is_scores=True)
            kept = {name: self.read_array(var) for name, var in self._input_var_dict.items()}
            inputs = self._step_inputs(ids, scores, kept)
            chosen_ids, chosen_scores = self._continuations(ids, scores, inputs)
            with Switch() as switch:
                with switch.case(is_empty(chosen_ids)):
                    self.early_stop()
                with switch.default():
                    self.state_cell.update_states()
                    self.update_array(ids, chosen_ids)
                    self.update_array(scores, chosen_scores)
                    for name, before in kept.items():
                        self.update_array(before, inputs[name])

    def _step_inputs(self, ids, scores, kept):
        """The cell's inputs: a row for every beam."""
        word = embedding(ids, [self._target_dict_dim, self._word_dim], is_sparse=self._sparse_emb)
        strangers = sorted(kept.keys() - self.state_cell._inputs)
        if strangers:
            raise UsageError(f"BeamSearchDecoder: input_var_dict has {strangers}, which are no inputs of the cell")
        return {name: sequence_expand(kept[name], scores) if name in kept else word for name in self.state_cell._inputs}

    def _continuations(self, ids, scores, inputs):
        """(ids, scores) of the best words to come next."""
        cell = self.state_cell
        for name in cell._state_names:
            cell.set_state(name, sequence_expand(cell.get_state(name), scores))
        cell.compute_state(inputs)
        for name in cell._state_names:
            cell.set_state(name, lod_reset(cell.get_state(name), scores))
        probabilities = fc(cell.out_state(), self._target_dict_dim, act="softmax")
        best, words = topk(probabilities, self._topk_size)
        totals = elementwise_add(log(best), reshape(scores, [-1]), axis=0)
        return beam_search(ids, scores, words, totals, self._beam_size, self._end_id)

    def __call__(self):
        """(words, scores) of the sentences, best first."""
        self._require("after", "the result")
        return beam_search_decode(self._ids_array, self._scores_array, self._beam_size, self._end_id)


def _require_variable(given, method, argument):
    if not isinstance(given, Variable):
        raise UsageError(f"BeamSearchDecoder.{method}: {argument} must be a variable, got {type(given).__name__}")
