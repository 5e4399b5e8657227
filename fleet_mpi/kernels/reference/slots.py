"""The slots of a table that grows: which row keeps which id, any 64-bit number.

``keys[slot]`` is the id kept in a slot; slots are given away in order of first use. ``index`` finds the
slot of an id by open addressing: its size is a power of two and one more, an entry is a slot or -1, and
the last entry is the last slot in use. An index full of -1 is an empty table, so a file or a fill
restores both arrays without further ado. Knows no tables' values.
"""

from fleet_mpi.arrays import module_of, to_host
from fleet_mpi.kernels import kernel

# What the key of a free slot reads; only a mark for people, no id is taken for it.
FREE = -2 ** 63
NOT_THERE = -1
TWO_TO_64 = 1 << 64
SPREAD = 0xD6E8FEB86659FD93


def index_size(capacity):
    """How many entries the index of so many slots has: at least half of them stay free."""
    return (1 << max(2 * capacity - 1, 1).bit_length()) + 1


def used(index):
    """How many slots are in use."""
    return int(to_host(index[-1:])[0]) + 1


@kernel
def find_slots(ids, keys, index, slots, may_add):
    """slots[i] = the slot of ids[i]; a new id gets the next free one if ``may_add``, else -1.

    Returns how many slots are in use afterwards, or -1 if the keys are full: then ``slots`` is undefined.
    """
    xp = module_of(ids)
    host_keys, host_index = to_host(keys), to_host(index)
    found, count = _find(to_host(ids).reshape(-1).tolist(), host_keys, host_index, may_add)
    if host_keys is not keys:
        keys[...] = xp.asarray(host_keys)
        index[...] = xp.asarray(host_index)
    if count >= 0 and found:
        slots[...] = xp.asarray(found, dtype=slots.dtype).reshape(slots.shape)
    return count


def _find(ids, keys, index, may_add):
    mask, found = len(index) - 2, []
    for key in ids:
        place = mixed(key) & mask
        while index[place] >= 0 and keys[index[place]] != key:
            place = place + 1 & mask
        slot = int(index[place])
        if slot < 0 and may_add:
            slot = int(index[-1]) + 1
            if slot == len(keys):
                return found, -1
            keys[slot], index[place], index[-1] = key, slot, slot
        found.append(slot)
    return found, int(index[-1]) + 1


def mixed(key):
    """Spread an id over 64 bits: neighbouring ids must not fill neighbouring entries."""
    value = key % TWO_TO_64
    value = (value ^ value >> 32) * SPREAD % TWO_TO_64
    return value ^ value >> 32
