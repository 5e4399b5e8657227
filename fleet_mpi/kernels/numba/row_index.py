"""The index of growing tables for host arrays. Same names, arguments and bits as ``row_index.py``.

Ids of a batch go through a pipeline: first their place in the index is asked for from memory, some ids later the key
of the slot that stands there, some ids later it is looked at.
"""

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.numba.prefetching import AHEAD, prefetch
from fleet_mpi.kernels.reference.row_index import FACTORS, NOT_STORED, SHIFTS

ONE, LOW = np.uint64(1), np.uint64(0xFFFFFFFF)
SHIFT1, SHIFT2, SHIFT3 = (np.uint64(one) for one in SHIFTS)
FACTOR1, FACTOR2 = (np.uint64(one) for one in FACTORS)


@compiled
def find(ids, keys, entries, slots):
    """Three stages; ``slots`` keeps what the second found for the third."""
    mask = np.uint64(entries.size - 1)
    for i in range(min(2 * AHEAD, ids.size)):
        prefetch(entries, hashed(ids[i]) & mask)
    for i in range(min(AHEAD, ids.size)):
        slots[i] = _candidate(ids[i], keys, entries, mask)
    for i in range(ids.size):
        if i + 2 * AHEAD < ids.size:
            prefetch(entries, hashed(ids[i + 2 * AHEAD]) & mask)
        if i + AHEAD < ids.size:
            slots[i + AHEAD] = _candidate(ids[i + AHEAD], keys, entries, mask)
        slot = slots[i]
        if slot >= 0 and keys[slot] != ids[i]:
            slots[i] = _slot_at(entries, _place_of(ids[i], keys, entries))


@compiled
def _candidate(key, keys, entries, mask):
    """The slot whose entry looks like the id's, or NOT_STORED; its key is on the way."""
    bits = hashed(key)
    place, tag = bits & mask, bits & LOW & ~mask
    entry = np.uint64(entries[place])
    while entry != 0 and (entry & ~mask) != tag:
        place = (place + ONE) & mask
        entry = np.uint64(entries[place])
    slot = np.int64(entry & mask) - 1
    if slot >= 0:
        prefetch(keys, slot)
    return slot


@compiled
def insert(ids, keys, entries, slots, count, most):
    """One loop over the ids."""
    mask = np.uint64(entries.size - 1)
    for i in range(ids.size):
        if i + AHEAD < ids.size:
            prefetch(entries, hashed(ids[i + AHEAD]) & mask)
        if slots[i] == NOT_STORED:
            place = _place_of(ids[i], keys, entries)
            if entries[place] == 0:
                if count == most:
                    return i, count
                keys[count] = ids[i]
                entries[place] = _entry(ids[i], count, entries)
                count += 1
            slots[i] = _slot_at(entries, place)
    return ids.size, count


@compiled
def enter(keys, entries, begin, end):
    """One loop over the slots: keys that are not among the entries need only a free place."""
    mask = np.uint64(entries.size - 1)
    for slot in range(begin, end):
        if slot + AHEAD < end:
            prefetch(entries, hashed(keys[slot + AHEAD]) & mask)
        place = hashed(keys[slot]) & mask
        while entries[place] != 0:
            place = (place + ONE) & mask
        entries[place] = _entry(keys[slot], slot, entries)


@compiled
def erase(ids, keys, entries, growing, moves, count, cursor):
    """One loop over the ids."""
    moved = 0
    for i in range(ids.size):
        slot = _slot_at(entries, _place_of(ids[i], keys, entries))
        if slot == NOT_STORED:
            continue
        count -= 1
        last = keys[count]
        _forget(ids[i], keys, entries)
        if slot < cursor:
            _forget(ids[i], keys, growing)
        if slot != count:
            _retarget(last, slot, keys, entries)
            if slot < cursor:
                _retarget(last, slot, keys, growing)
        keys[slot] = last
        cursor = min(cursor, count)
        moves[moved, 0], moves[moved, 1] = count, slot
        moved += 1
    return count, cursor


@compiled
def first_unfit(slots, marks, count):
    """A bit of ``marks`` for each slot that was met, cleared again in a second pass."""
    met = 0
    while met < slots.size:
        slot = slots[met]
        if slot < 0 or slot >= count or marks[slot >> 3] >> (slot & 7) & 1:
            break
        marks[slot >> 3] |= np.uint8(1 << (slot & 7))
        met += 1
    for i in range(met):
        marks[slots[i] >> 3] = 0
    return met if met < slots.size else -1


@compiled
def hashed(key):
    """64 bits of an id, each of which depends on every bit of it."""
    value = np.uint64(key)
    value = (value ^ value >> SHIFT1) * FACTOR1
    value = (value ^ value >> SHIFT2) * FACTOR2
    return value ^ value >> SHIFT3


@compiled
def _retarget(key, slot, keys, entries):
    entries[_place_of(key, keys, entries)] = _entry(key, slot, entries)


@compiled
def _forget(key, keys, entries):
    mask = np.uint64(entries.size - 1)
    hole = _place_of(key, keys, entries)
    place = (hole + ONE) & mask
    while entries[place] != 0:
        home = hashed(keys[_slot_at(entries, place)]) & mask
        if ((place - home) & mask) >= ((place - hole) & mask):
            entries[hole] = entries[place]
            hole = place
        place = (place + ONE) & mask
    entries[hole] = 0


@compiled
def _place_of(key, keys, entries):
    mask = np.uint64(entries.size - 1)
    bits = hashed(key)
    place, tag = bits & mask, bits & LOW & ~mask
    while entries[place] != 0 and ((entries[place] & ~mask) != tag or keys[_slot_at(entries, place)] != key):
        place = (place + ONE) & mask
    return place


@compiled
def _slot_at(entries, place):
    return np.int64(np.uint64(entries[place]) & np.uint64(entries.size - 1)) - 1


@compiled
def _entry(key, slot, entries):
    mask = np.uint64(entries.size - 1)
    return np.uint32(hashed(key) & LOW & ~mask | np.uint64(slot + 1))
