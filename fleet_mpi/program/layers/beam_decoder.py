"""BeamSearchDecoder: several sentences of each source at once, all beams in dense arrays [batch, beams, ...]."""

from collections import namedtuple

import numpy as np

from fleet_mpi.program.graph.structures import flatten, map_structure
from fleet_mpi.program.layers.beam_search import gather_tree
from fleet_mpi.program.layers.comparison import equal, logical_not, logical_or
from fleet_mpi.program.layers.decoding import Decoder
from fleet_mpi.program.layers.manipulation import expand, gather_nd, reshape, stack, topk, unsqueeze
from fleet_mpi.program.layers.math import cast, cumsum, elementwise_floordiv, elementwise_mod, elementwise_mul, scale
from fleet_mpi.program.layers.nn import log_softmax
from fleet_mpi.program.layers.tensor import assign, fill_constant_batch_size_like, ones_like, zeros_like

# As low as a score can be and still be added to others.
NEVER = -1e9


class BeamSearchDecoder(Decoder):
    """The ``beam_size`` best sentences of each source; ``cell`` gives scores, through ``output_fn`` where it is
    given."""

    OutputWrapper = namedtuple("OutputWrapper", ("scores", "predicted_ids", "parent_ids"))
    StateWrapper = namedtuple("StateWrapper", ("cell_states", "log_probs", "finished", "lengths"))

    def __init__(self, cell, start_token, end_token, beam_size, embedding_fn=None, output_fn=None):
        self.cell, self.start_token, self.end_token, self.beam_size = cell, start_token, end_token, beam_size
        self.embedding_fn, self.output_fn = embedding_fn, output_fn

    @property
    def tracks_own_finished(self):
        """Beams change places."""
        return True

    @staticmethod
    def tile_beam_merge_with_batch(x, beam_size):
        """[batch, ...] -> [batch x beams, ...]: each row as often as there are beams, one behind the other."""
        return _merged(_tiled(x, beam_size))

    def initialize(self, initial_cell_states):
        """Of each source one beam that counts, the others with a score that never wins."""
        states = map_structure(lambda state: _tiled(state, self.beam_size), initial_cell_states)
        like = flatten(initial_cell_states)[0]
        ids = fill_constant_batch_size_like(like, [-1, self.beam_size], "int64", self.start_token)
        row = assign(np.array([[0.0] + [NEVER] * (self.beam_size - 1)], "float32"))
        log_probs = fill_constant_batch_size_like(like, [-1, self.beam_size], "float32", 0.0) + row
        finished = equal(ids, scale(ids, 1.0, 1.0))
        inputs = ids if self.embedding_fn is None else self.embedding_fn(ids)
        return inputs, self.StateWrapper(states, log_probs, finished, zeros_like(ids)), finished

    def step(self, time, inputs, states, **kwargs):
        """The cell for all beams of all sources, then the best continuations."""
        merged = map_structure(_merged, (inputs, states.cell_states))
        outputs, cell_states = self.cell(*merged, **kwargs)
        outputs = outputs if self.output_fn is None else self.output_fn(outputs)
        cell_states = map_structure(self._split, cell_states)
        chosen, states = self._search(self._split(outputs), cell_states, states)
        ids = chosen.predicted_ids
        return chosen, states, ids if self.embedding_fn is None else self.embedding_fn(ids), states.finished

    def _split(self, x):
        return reshape(x, [-1, self.beam_size, *x.shape[1:]])

    def _search(self, logits, cell_states, states):
        words = logits.shape[-1]
        log_probs = self._of_ended(log_softmax(logits), states.finished, words) + unsqueeze(states.log_probs, [2])
        scores, places = topk(reshape(log_probs, [-1, self.beam_size * words]), self.beam_size)
        count = assign(np.array([words], "int64"))
        parents, ids = elementwise_floordiv(places, count), elementwise_mod(places, count)
        take = _taking(parents)
        was_finished = take(states.finished)
        lengths = take(states.lengths) + cast(logical_not(was_finished), "int64")
        finished = logical_or(was_finished, equal(ids, assign(np.array([self.end_token], "int64"))))
        made = self.StateWrapper(map_structure(take, cell_states), scores, finished, lengths)
        return self.OutputWrapper(scores, ids, parents), made

    def _of_ended(self, log_probs, finished, words):
        """A beam that has ended goes on with the end only, at no cost."""
        row = np.full((words,), NEVER, "float32")
        row[self.end_token] = 0.0
        ended, only_end = cast(finished, "float32"), zeros_like(log_probs) + assign(row)
        return elementwise_mul(log_probs, scale(ended, -1.0, 1.0), axis=0) + elementwise_mul(only_end, ended, axis=0)

    def finalize(self, outputs, final_states, sequence_lengths):
        """Whole sentences, [steps, batch, beams], best first."""
        return gather_tree(outputs.predicted_ids, outputs.parent_ids), final_states


def _tiled(x, beam_size):
    """[batch, ...] -> [batch, beams, ...]."""
    x = unsqueeze(x, [1])
    return expand(x, [1, beam_size] + [1] * (len(x.shape) - 2))


def _merged(x):
    """[batch, beams, ...] -> [batch x beams, ...]."""
    return reshape(x, [-1, *x.shape[2:]])


def _taking(beams):
    """The function that takes, of [batch, beams, ...], the beams of these numbers [batch, beams]."""
    batch = cumsum(ones_like(beams), axis=0, exclusive=True)
    index = stack([batch, beams], axis=2)

    def take(x):
        if x.dtype != "bool":
            return gather_nd(x, index)
        return cast(gather_nd(cast(x, "int64"), index), "bool")
    return take
