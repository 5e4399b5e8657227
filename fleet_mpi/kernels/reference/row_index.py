"""The index of a growing table: which slot keeps the row of an id, any 64-bit number.

``keys[slot]`` is the id kept in a slot; slots 0..count-1 are in use. ``entries`` (uint32, a power of two 2**k of them)
finds the slot of an id by open addressing with linear probing. An entry is 0, or ``slot + 1`` in its low k bits and
bits k..31 of the id's hash above: a foreign key is read from memory almost never. Fresh zeros are an empty index.

A larger index is filled while the old one serves: ``growing`` has the slots below ``cursor``, nothing else. Whoever
inserts puts new slots into the old one alone, ``enter`` moves the cursor, ``erase`` keeps both right. Knows no values.
"""

import numpy as np

from fleet_mpi.arrays import module_of, to_host
from fleet_mpi.kernels import kernel

NOT_STORED = -1
TWO_TO_64 = 1 << 64
# The finish of splitmix64: shift, multiply, shift, multiply, shift.
SHIFTS, FACTORS = (30, 27, 31), (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def hashed(key):
    """64 bits of an id, each of which depends on every bit of it."""
    value = key % TWO_TO_64
    value = (value ^ value >> SHIFTS[0]) * FACTORS[0] % TWO_TO_64
    value = (value ^ value >> SHIFTS[1]) * FACTORS[1] % TWO_TO_64
    return value ^ value >> SHIFTS[2]


def hashed_line(ids):
    """``hashed`` of each of an array of ids, uint64."""
    value = ids.astype("uint64")
    for shift, factor in zip(SHIFTS, FACTORS):
        value = (value ^ value >> shift) * factor
    return value ^ value >> SHIFTS[-1]


@kernel
def find(ids, keys, entries, slots):
    """slots[i] (int32) = the slot of ids[i], or NOT_STORED; ids may repeat."""
    _on_host(_find, ids, keys, entries, slots)


@kernel
def insert(ids, keys, entries, slots, count, most):
    """Give each id whose ``slots[i]`` is NOT_STORED the next slot; an id that is there by now gets its own.

    Returns (where it stopped, how many slots are in use): before the first id that ``most`` slots have no place for.
    """
    return _on_host(_insert, ids, keys, entries, slots, count, most)


@kernel
def enter(keys, entries, begin, end):
    """Enter the slots ``begin`` to ``end``, whose keys are not among ``entries``."""
    _on_host(_enter, keys, entries, begin, end)


@kernel
def erase(ids, keys, entries, growing, moves, count, cursor):
    """Forget the ids that are stored; the last slot moves into each hole. ``growing`` may be empty.

    Returns (count, cursor) afterwards. ``moves`` (int32 [ids, 2]) gets (from, to) of each move, in order: as many as
    rows were erased, some of them from a slot to itself.
    """
    return _on_host(_erase, ids, keys, entries, growing, moves, count, cursor)


@kernel
def first_unfit(slots, marks, count):
    """The position of the first slot that is outside 0..count-1 or comes again, or -1.

    ``marks`` (uint8, a bit for each slot) are zeros, before and after.
    """
    seen = set()
    for position, slot in enumerate(to_host(slots).tolist()):
        if not 0 <= slot < count or slot in seen:
            return position
        seen.add(slot)
    return -1


def _on_host(run, *given):
    """Call ``run`` with host arrays, and bring back to a device what it changed."""
    there = [to_host(one) if hasattr(one, "dtype") else one for one in given]
    result = run(*there)
    for mine, host in zip(given, there, strict=True):
        if mine is not host:
            mine[...] = module_of(mine).asarray(host)
    return result


def _find(ids, keys, entries, slots):
    for i, key in enumerate(ids.tolist()):
        slots[i] = _slot_at(entries, _place_of(key, keys, entries))


def _insert(ids, keys, entries, slots, count, most):
    for i, key in enumerate(ids.tolist()):
        if slots[i] == NOT_STORED:
            place = _place_of(key, keys, entries)
            if not entries[place]:
                if count == most:
                    return i, count
                keys[count] = key
                entries[place] = _entry(key, count, entries)
                count += 1
            slots[i] = _slot_at(entries, place)
    return len(ids), count


def _enter(keys, entries, begin, end):
    for slot in range(begin, end):
        place = _place_of(int(keys[slot]), keys, entries)
        entries[place] = _entry(int(keys[slot]), slot, entries)


def _erase(ids, keys, entries, growing, moves, count, cursor):
    moved = 0
    for key in ids.tolist():
        slot = _slot_at(entries, _place_of(key, keys, entries))
        if slot == NOT_STORED:
            continue
        count -= 1
        last = int(keys[count])
        _forget(key, keys, entries)
        if slot < cursor:
            _forget(key, keys, growing)
        if slot != count:
            _retarget(last, slot, keys, entries)
            if slot < cursor:
                # What had not been entered yet takes the place of what had.
                _retarget(last, slot, keys, growing)
        keys[slot] = last
        cursor = min(cursor, count)
        moves[moved] = count, slot
        moved += 1
    return count, cursor


def _retarget(key, slot, keys, entries):
    """Let an id's entry name another slot; it gets one if it has none."""
    entries[_place_of(key, keys, entries)] = _entry(key, slot, entries)


def _forget(key, keys, entries):
    """Take an id's entry away and shift back those behind it that are not at home."""
    mask = len(entries) - 1
    hole = _place_of(key, keys, entries)
    place = hole + 1 & mask
    while entries[place]:
        home = hashed(int(keys[_slot_at(entries, place)])) & mask
        if (place - home & mask) >= (place - hole & mask):
            entries[hole] = entries[place]
            hole = place
        place = place + 1 & mask
    entries[hole] = 0


def _place_of(key, keys, entries):
    """Where the entry of an id is, or would be."""
    mask = len(entries) - 1
    bits = hashed(key)
    place, tag = bits & mask, (bits & 0xFFFFFFFF) & ~mask
    while entries[place] and not ((int(entries[place]) & ~mask) == tag and keys[_slot_at(entries, place)] == key):
        place = place + 1 & mask
    return place


def _slot_at(entries, place):
    return (int(entries[place]) & len(entries) - 1) - 1


def _entry(key, slot, entries):
    mask = len(entries) - 1
    return np.uint32((hashed(key) & 0xFFFFFFFF) & ~mask | slot + 1)
