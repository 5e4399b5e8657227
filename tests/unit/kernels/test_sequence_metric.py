"""Kernels of sequence metrics: both versions agree."""

import numpy as np

from fleet_mpi.program.ops.sequence_metric import SCHEMES


def spans(rng, count, longest):
    lengths = rng.integers(0, longest, count)
    ends = np.cumsum(lengths)
    return ends - lengths, ends


def distances(count, longest):
    def make(rng):
        (a, b), (c, d) = spans(rng, count, longest), spans(rng, count, longest)
        return rng.integers(0, 4, b[-1]), rng.integers(0, 4, d[-1]), a, b, c, d, np.empty(count, np.float32)
    return make


def chunks(scheme, types, count):
    def make(rng):
        tags, (begins, ends) = np.array(SCHEMES[scheme]), spans(rng, count, 20)
        highest = types * max((tags >= 0).sum(), 1)
        labels = rng.integers(0, highest + 1, ends[-1])
        inferred = np.where(rng.random(ends[-1]) < 0.8, labels, rng.integers(0, highest + 1, ends[-1]))
        return inferred, labels, begins, ends, types, tags, rng.random(types) < 0.2, np.empty(3, np.int64)
    return make


KERNEL_CASES = {"edit_distances": [distances(1, 9), distances(20, 12)],
                "count_chunks": [chunks(scheme, types, 30) for scheme in SCHEMES for types in (1, 3)]}
