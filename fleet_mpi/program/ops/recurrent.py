"""What the recurrent ops share: activations, and walking all sequences of a batch step by step.

Beyond the layers of the guides, so plain array code: each step is one product and a few passes over small
arrays, which it allocates.
"""

import numpy as np

from fleet_mpi.errors import UsageError, nearest
from fleet_mpi.kernels.reference import sequence as kernels
from fleet_mpi.program.engine import lod_rows

# The original numbers them in gru_unit, and names them elsewhere.
NUMBERS = {0: "identity", 1: "sigmoid", 2: "tanh", 3: "relu"}


def _sigmoid(xp, x):
    # By tanh: exp(-x) would overflow, with a warning, for large negative x.
    return 0.5 * (1 + xp.tanh(0.5 * x))


# Name -> the function, and its slope from what the function gave.
ACTIVATIONS = {
    "sigmoid": (_sigmoid, lambda y: y * (1 - y)),
    "tanh": (lambda xp, x: xp.tanh(x), lambda y: 1 - y * y),
    "relu": (lambda xp, x: xp.maximum(x, 0), lambda y: (y > 0).astype(y.dtype)),
    "identity": (lambda xp, x: x, lambda y: y * 0 + 1),
}


def activation(k, attr):
    """(function of an array, slope from the function's value) that an attribute names."""
    name = NUMBERS.get(k.attr(attr), k.attr(attr))
    if name not in ACTIVATIONS:
        raise UsageError(f"{k.op}: {attr}: no activation {name!r}; {nearest(name, ACTIVATIONS)}")
    function, slope = ACTIVATIONS[name]
    return (lambda x, xp=k.xp: function(xp, x)), slope


def arrays_of(k):
    """A function that gives the array of a slot, None where the slot is empty; looked up now, not at each step."""
    return {slot: k[slot] for slot in (*k.op.inputs, *k.op.outputs)}.get


class Walk:
    """The rows of a batch of sequences in the order of time, behind one row of first state per sequence.

    ``steps`` are (begin, end, where the states before lie), all in that order: those before the first
    step are the rows of first state.
    """

    def __init__(self, k, level):
        xp = self.xp = k.xp
        order, rows, counts = lod_rows.time_order(level, k.attr("is_reverse"))
        ends = np.cumsum(counts, dtype=np.int64) + len(order)
        begins = ends - counts
        before = np.concatenate([[0], begins])[:len(counts)]
        self.sequences, self.count = len(order), len(order) + len(rows)
        self.steps = list(zip(begins.tolist(), ends.tolist(), before.tolist()))
        self.order, self.rows = xp.asarray(order), xp.asarray(rows)
        self.before = xp.asarray(lod_rows.runs(before, counts))
        self._order_back, self._rows_back = xp.asarray(np.argsort(order)), xp.asarray(np.argsort(rows))

    def enter(self, rows, first, width, dtype):
        """Rows as they came (None: zeros) and first states (None: zeros) in the order of time."""
        made = self.xp.zeros((self.count, width), dtype)
        if first is not None:
            kernels.take_rows(first, self.order, 0, made[:self.sequences])
        if rows is not None:
            kernels.take_rows(rows, self.rows, 0, made[self.sequences:])
        return made

    def leave(self, values, rows):
        """Write what follows the first states back in the order the rows came in."""
        kernels.take_rows(values[self.sequences:], self._rows_back, 0, rows)

    def leave_first(self, values, first):
        """Write the first states back in the order of the sequences; nothing where nobody asks."""
        if first is not None:
            kernels.take_rows(values[:self.sequences], self._order_back, 0, first)
