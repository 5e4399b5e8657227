"""Decoders: what ``dynamic_decode`` runs step by step until every sequence has ended."""

from collections import namedtuple

from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.graph.structures import flatten, map_structure, pack_like
from fleet_mpi.program.layers.beam_search import gather_tree
from fleet_mpi.program.layers.comparison import equal, less_equal, logical_and, logical_not, logical_or
from fleet_mpi.program.layers.control_flow import While
from fleet_mpi.program.layers.dynamic_rnn import around
from fleet_mpi.program.layers.manipulation import argmax, concat, gather, squeeze
from fleet_mpi.program.layers.math import cast, elementwise_mul, increment, scale
from fleet_mpi.program.layers.nn import softmax
from fleet_mpi.program.layers.reduction import reduce_all
from fleet_mpi.program.layers.rnn_cells import batch_and_time_exchanged
from fleet_mpi.program.layers.sampled_loss import sampling_id
from fleet_mpi.program.layers.tensor import assign, fill_constant, zeros_like
from fleet_mpi.program.layers.tensor_array import array_write, create_array, tensor_array_to_tensor

__all__ = ["Decoder", "BasicDecoder", "DecodeHelper", "TrainingHelper", "GreedyEmbeddingHelper",
           "SampleEmbeddingHelper",
           "dynamic_decode", "gather_tree"]


class Decoder:
    """Base of decoders."""

    def initialize(self, inits):
        """(first inputs, first states, which sequences have ended, a bool for each)."""
        raise NotImplementedError(f"{type(self).__name__} defines no initialize(self, inits)")

    def step(self, time, inputs, states, **kwargs):
        """(outputs, next states, next inputs, which have ended)."""
        raise NotImplementedError(f"{type(self).__name__} defines no step(self, time, inputs, states)")

    def finalize(self, outputs, final_states, sequence_lengths):
        """(outputs, states) made of the outputs of all steps [steps, batch, ...]."""
        raise NotImplementedError(f"{type(self).__name__} defines no finalize")

    @property
    def tracks_own_finished(self):
        """Whether a sequence that has ended may be another one at the next step, as in a beam."""
        return False


def dynamic_decode(decoder, inits=None, max_step_num=None, output_time_major=False, impute_finished=False,
                   is_test=False,
                   return_length=False, **kwargs):
    """(outputs of all steps, last states), with ``return_length`` the lengths too.

    The last step is that at which all have ended or, as in the original, the one numbered ``max_step_num``, from 0 on.
    With ``impute_finished`` the states of a sequence stay as they were when it ended.
    """
    loop = _Decoding(decoder, inits, max_step_num, impute_finished, is_test)
    outputs, states = loop.run(kwargs)
    try:
        outputs, states = decoder.finalize(outputs, states, loop.lengths)
    except NotImplementedError:
        pass  # a decoder whose steps' outputs are the result
    if not output_time_major:
        outputs = map_structure(batch_and_time_exchanged, outputs)
    return (outputs, states, loop.lengths) if return_length else (outputs, states)


class _Decoding:
    """The loop of one ``dynamic_decode``."""

    def __init__(self, decoder, inits, max_step_num, impute_finished, is_test):
        self.decoder, self.impute_finished = decoder, impute_finished
        given = decoder.initialize(inits)
        # The loop writes its variables: copies, so that nobody else's change.
        self.inputs, self.states, self.finished = (map_structure(assign, one) for one in given)
        self.lengths = assign(zeros_like(cast(self.finished, "int64")))
        self.step = fill_constant([1], "int64", 0)
        self.last = None if max_step_num is None else fill_constant([1], "int64", max_step_num)
        self.more = logical_not(reduce_all(self.finished))
        self.loop = While(self.more, is_test=is_test)

    def run(self, kwargs):
        """(outputs of all steps [steps, batch, ...], last states)."""
        with self.loop.block():
            body = default_main_program().current_block()
            outputs, states, inputs, finished = self.decoder.step(self.step, self.inputs, self.states, **kwargs)
            states = pack_like(self.states, flatten(states))
            finished, lengths, states = self._ended(finished, states)
            arrays = [self._note(body, one) for one in flatten(outputs)]
            increment(self.step)
            for new, old in ((states, self.states), (pack_like(self.inputs, flatten(inputs)), self.inputs),
                             (finished, self.finished), (lengths, self.lengths)):
                map_structure(assign, new, old)
            self._ask()
        return pack_like(outputs, [tensor_array_to_tensor(one, 0, use_stack=True)[0] for one in arrays]), self.states

    def _note(self, body, value):
        with around(body):
            array = create_array(value.dtype)
        return array_write(value, self.step, array)

    def _ended(self, finished, states):
        if self.decoder.tracks_own_finished:
            return finished, getattr(states, "lengths", self.lengths), states
        lengths = self.lengths + cast(logical_not(self.finished), "int64")
        if self.impute_finished:
            states = map_structure(lambda new, old: _chosen(self.finished, old, new), states, self.states)
        return logical_or(finished, self.finished), lengths, states

    def _ask(self):
        more = logical_not(reduce_all(self.finished))
        if self.last is not None:
            more = logical_and(more, less_equal(self.step, self.last))
        assign(more, self.more)


def _chosen(flags, one, other):
    """Rows of ``one`` where flags hold, else of ``other``."""
    flags = cast(flags, one.dtype)
    return elementwise_mul(one, flags, axis=0) + elementwise_mul(other, scale(flags, -1.0, 1.0), axis=0)


class BasicDecoder(Decoder):
    """A cell whose next input a helper chooses; each step gives (cell_outputs, sample_ids)."""

    OutputWrapper = namedtuple("OutputWrapper", ("cell_outputs", "sample_ids"))

    def __init__(self, cell, helper, output_fn=None):
        self.cell, self.helper, self.output_fn = cell, helper, output_fn

    def initialize(self, initial_cell_states):
        """The helper's first inputs, and the states as given."""
        inputs, finished = self.helper.initialize()
        return inputs, initial_cell_states, finished

    def step(self, time, inputs, states, **kwargs):
        """One step of the cell; the helper samples and chooses."""
        outputs, states = self.cell(inputs, states, **kwargs)
        outputs = outputs if self.output_fn is None else self.output_fn(outputs)
        ids = self.helper.sample(time=time, outputs=outputs, states=states)
        ids.stop_gradient = True
        finished, inputs, states = self.helper.next_inputs(time=time, outputs=outputs, states=states, sample_ids=ids)
        return self.OutputWrapper(outputs, ids), states, inputs, finished


class DecodeHelper:
    """Base of helpers: which inputs a decoder gets."""

    def initialize(self):
        """(first inputs, which have ended)."""
        raise NotImplementedError(f"{type(self).__name__} defines no initialize(self)")

    def sample(self, time, outputs, states):
        """The ids that a step gives."""
        raise NotImplementedError(f"{type(self).__name__} defines no sample")

    def next_inputs(self, time, outputs, states, sample_ids):
        """(which have ended, next inputs, states)."""
        raise NotImplementedError(f"{type(self).__name__} defines no next_inputs")


class TrainingHelper(DecodeHelper):
    """The inputs of a target that is known, step by step."""

    def __init__(self, inputs, sequence_length, time_major=False):
        self.sequence_length = sequence_length
        steps = inputs if time_major else map_structure(batch_and_time_exchanged, inputs)
        self.first = map_structure(lambda x: _at(x, fill_constant([1], "int64", 0)), steps)
        # One step more, of zeros: behind the last one an input is still asked for.
        self.steps = map_structure(lambda x, one: concat([x, _step_of_zeros(one)], 0), steps, self.first)

    def initialize(self):
        """The first step of the target."""
        return self.first, equal(self.sequence_length, zeros_like(self.sequence_length))

    def sample(self, time, outputs, states):
        """The best id."""
        return argmax(outputs, axis=-1)

    def next_inputs(self, time, outputs, states, sample_ids):
        """The next step of the target."""
        following = scale(time, 1.0, 1.0)
        finished = less_equal(self.sequence_length, cast(following, self.sequence_length.dtype))
        return finished, map_structure(lambda x: _at(x, following), self.steps), states


def _at(steps, index):
    return squeeze(gather(steps, index), [0])


def _step_of_zeros(one):
    from fleet_mpi.program.layers.manipulation import unsqueeze
    return unsqueeze(zeros_like(one), [0])


class GreedyEmbeddingHelper(DecodeHelper):
    """The embedding of the best id of the step before; a sequence ends with ``end_token``."""

    def __init__(self, embedding_fn, start_tokens, end_token):
        self.embedding_fn, self.start_tokens = embedding_fn, start_tokens
        self.end_token = fill_constant([1], "int64", end_token)

    def initialize(self):
        """The start tokens' embeddings."""
        never = equal(self.start_tokens, scale(self.start_tokens, 1.0, 1.0))
        return self.embedding_fn(self.start_tokens), never

    def sample(self, time, outputs, states):
        """The best id."""
        return argmax(outputs, axis=-1)

    def next_inputs(self, time, outputs, states, sample_ids):
        """The ids' embeddings."""
        return equal(sample_ids, self.end_token), self.embedding_fn(sample_ids), states


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """As greedy, with ids drawn by their probabilities."""

    def __init__(self, embedding_fn, start_tokens, end_token, softmax_temperature=None, seed=None):
        super().__init__(embedding_fn, start_tokens, end_token)
        self.softmax_temperature, self.seed = softmax_temperature, seed

    def sample(self, time, outputs, states):
        """Draw from softmax(outputs / temperature)."""
        logits = outputs if self.softmax_temperature is None else scale(outputs, 1.0 / self.softmax_temperature)
        return sampling_id(softmax(logits), seed=self.seed or 0)
