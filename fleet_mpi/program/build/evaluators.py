"""Evaluators of before 1.0: metrics whose counts the program itself adds up, batch by batch, until they are reset."""

import numpy as np

from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.layers.sequence_labels import chunk_eval
from fleet_mpi.program.layers.tensor import create_global_var


class Evaluator:
    """``metrics`` are a batch's values to fetch, ``states`` the sums since the last ``reset``."""

    def __init__(self, name, **kwargs):
        self.helper = LayerHelper(name, **kwargs)
        self.metrics, self.states = [], []

    def reset(self, executor, reset_program=None):
        """Begin to count anew."""
        for state in self.states:
            global_scope().var(state.name).get_tensor().set(np.zeros(state.shape, state._dtype))

    def eval(self, executor, eval_program=None):
        """The metric over all batches since the last reset."""
        raise NotImplementedError(f"{type(self).__name__} has no eval")

    def _add_up(self, value, dtype):
        """A state that grows by a variable of the program at every run."""
        name = unique_name.generate(f"{self.helper.name}.sum")
        state = create_global_var([1], 0, dtype, persistable=True, name=name)
        self.helper.append_op("sum", {"X": [state, value]}, {"Out": [state]})
        self.states.append(state)

    def _sums(self):
        return [global_scope().find_var(state.name).get_tensor().numpy().item() for state in self.states]


class ChunkEvaluator(Evaluator):
    """Precision, recall and F1 of chunks; a batch's are in ``metrics``."""

    def __init__(self, input, label, chunk_scheme, num_chunk_types, excluded_chunk_types=None):
        super().__init__("chunk_eval")
        *self.metrics, inferred, labelled, correct = chunk_eval(input, label, chunk_scheme, num_chunk_types,
                                                                excluded_chunk_types)
        for count in (inferred, labelled, correct):
            self._add_up(count, "int64")

    def eval(self, executor, eval_program=None):
        """(precision, recall, F1), each an array of shape [1]; 0 where there is nothing to divide by."""
        inferred, labelled, correct = self._sums()
        precision, recall = (correct / many if many else 0.0 for many in (inferred, labelled))
        f1 = 2 * precision * recall / (precision + recall) if correct else 0.0
        return tuple(np.array([one], "float32") for one in (precision, recall, f1))
