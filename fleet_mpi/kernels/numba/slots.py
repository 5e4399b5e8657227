"""Slots of growing tables for host arrays. Same names, arguments and bits as ``slots.py``."""

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.numba.rows import mixed


def find_slots(ids, keys, index, slots, may_add):
    """One loop over the ids."""
    return _find(ids.reshape(-1), keys, index, slots.reshape(-1), may_add)


@compiled
def _find(ids, keys, index, slots, may_add):
    mask, count = np.uint64(index.size - 2), index[-1] + 1
    for i in range(ids.size):
        key = ids[i]
        place = mixed(key) & mask
        while index[place] >= 0 and keys[index[place]] != key:
            place = place + np.uint64(1) & mask
        slot = index[place]
        if slot < 0 and may_add:
            if count == keys.size:
                return -1
            slot = count
            keys[slot] = key
            index[place] = slot
            index[-1] = slot
            count += 1
        slots[i] = slot
    return count
