"""Partitions of ids for host arrays. Same names, arguments and bits as ``partitions.py``."""

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.reference.partitions import BITS
from fleet_mpi.kernels.reference.row_index import FACTORS, SHIFTS

SHIFT0, SHIFT1, SHIFT2 = (np.uint64(one) for one in SHIFTS)
FACTOR0, FACTOR1 = (np.uint64(one) for one in FACTORS)
DROPPED = np.uint64(64 - BITS)


def split_by_partition(ids, counts, local, order):
    """Two passes: count, then place."""
    _split(ids, counts, np.empty(ids.size, np.int32), np.empty(counts.size, np.int64), local, order)


@compiled
def _partition_of(key):
    hashed = np.uint64(key)
    hashed = (hashed ^ hashed >> SHIFT0) * FACTOR0
    hashed = (hashed ^ hashed >> SHIFT1) * FACTOR1
    return np.int64((hashed ^ hashed >> SHIFT2) >> DROPPED)


@compiled
def _split(ids, counts, owners, ends, local, order):
    counts[:] = 0
    for i in range(ids.size):
        owners[i] = _partition_of(ids[i]) * counts.size >> BITS
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
