"""Partitions of ids for host arrays. Same names, arguments and bits as ``partitions.py``."""

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.numba.row_index import hashed
from fleet_mpi.kernels.reference.partitions import BITS

DROPPED = np.uint64(64 - BITS)


def split_by_partition(ids, counts, local, order):
    """Two passes: count, then place."""
    _split(ids, counts, np.empty(ids.size, np.int32), np.empty(counts.size, np.int64), local, order)


@compiled
def _split(ids, counts, owners, ends, local, order):
    counts[:] = 0
    for i in range(ids.size):
        owners[i] = np.int64(hashed(ids[i]) >> DROPPED) * counts.size >> BITS
        counts[owners[i]] += 1
    start = 0
    for k in range(counts.size):
        ends[k] = start
        start += counts[k]
    for i in range(ids.size):
        place = ends[owners[i]]
        ends[owners[i]] = place + 1
        local[place] = ids[i]
        order[place] = i
