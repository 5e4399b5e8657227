"""Where the sequences of an input lie, as rows from ``begins`` to ``ends``: by its LoD, or padded, by a length each."""

import numpy as np

from fleet_mpi.kernels.reference import rows as row_kernels
from fleet_mpi.program.engine import lod_rows
from fleet_mpi.program.engine.outside import id_check
from fleet_mpi.program.ops.sequence import forward_meta, last_level


class Spans:
    """The sequences of one input; ``find()`` must have been called in this run before they are read.

    A padded input is [sequences, longest, ...], with ``lengths`` in another input; one with a LoD has rows in its first
    dimension.
    """

    def __init__(self, k, slot, lengths, of_forward=False):
        self.k, self.slot, self.is_padded = k, slot, k.has(lengths)
        meta = forward_meta(k, slot) if of_forward else k.meta(slot)
        if self.is_padded:
            self.count, self.longest = meta.shape[:2]
            self.begins = k.xp.arange(self.count, dtype="int64") * self.longest
            self.ends = k.keep((self.count,), np.int64)
            self.lengths = k[lengths].reshape(-1)
        else:
            level = meta.lod[-1] if of_forward else last_level(k, slot)
            offsets = lod_rows.offsets_array(level, k.xp)
            self.count, self.begins, self.ends = len(level) - 1, offsets[:-1], offsets[1:]

    def find(self):
        """Bring the ends up to date; an error for a length beyond the padding."""
        if self.is_padded:
            bad = row_kernels.first_outside(self.lengths, self.longest + 1)
            if bad != row_kernels.ALL_INSIDE:
                self.k.fail(f"the length of sequence {bad} of {self.slot} is not within 0 and {self.longest}")
            self.k.xp.add(self.begins, self.lengths, out=self.ends)

    def check(self, ids, height, what):
        """The call that is an error for an id, of a row within some sequence, that is not in [0, height)."""
        check, xp = id_check(self.k, height, what), self.k.xp
        if not self.is_padded:
            return lambda: check(ids)
        position, table = xp.arange(self.longest, dtype="int64").reshape(1, -1), ids.reshape(self.count, self.longest)
        return lambda: check(xp.where(position < self.lengths.reshape(-1, 1), table, 0))


def span_count(k, slot, lengths):
    """In ``infer``: how many sequences an input has; -1 while the program is built."""
    if k.has(lengths):
        return k.shape(slot)[0]
    return len(last_level(k, slot)) - 1 if k.concrete else -1
