"""The row kernels for host arrays. Same names, arguments and bits as ``rows.py``."""

import numpy as np

from fleet_mpi.errors import ProgramError
from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.reference.rows import scratch_size


def first_outside(ids, height):
    """One pass without branches; only a bad list is searched for its first bad id."""
    return _first_outside(ids.reshape(-1), height)


def gather_rows(table, ids, out, padding_idx):
    """Check, then numpy's ``take``: its row copies overlap their cache misses, twice as fast as a loop of ours."""
    line = ids.reshape(-1)
    bad = _first_outside(line, table.shape[0])
    if bad < 0:
        np.take(table, ids, axis=0, out=out, mode="clip")  # clip: the other modes buffer the output
        if padding_idx >= 0:
            _clear(line, _matrix_of(out, line.size), padding_idx)
    return bad


def scatter_add_rows(table, ids, values, padding_idx):
    """Check and add in one call."""
    line = ids.reshape(-1)
    return _scatter_add(_matrix(table), line, _matrix_of(values, line.size), padding_idx)


def merge_rows(ids, values, out_ids, out_values, scratch):
    """By an open-addressing hash of positions in ``out_ids``."""
    table = scratch[:scratch_size(len(ids))]
    return _merge(ids, _matrix(values), out_ids, _matrix(out_values), table)


def split_ids(ids, begins, shifts, owners, counts, local, order):
    """Two passes: count, then place."""
    _split(ids, begins, shifts, owners, counts, np.empty(ids.size, np.int32), np.empty(counts.size, np.int64), local,
           order)


def _matrix(table):
    return _matrix_of(table, table.shape[0])


def _matrix_of(rows, count):
    """A view of [count, width]; rows are changed through it, so a copy would be a silent loss."""
    if rows.ndim == 2 and rows.shape[0] == count:
        return rows
    if not rows.flags.c_contiguous:
        raise ProgramError(f"rows must lie contiguous to be changed in place, got shape {rows.shape} with strides "
                           f"{rows.strides}: pass the whole array, or a copy of the part")
    return rows.reshape(count, rows.size // count if count else 0)


@compiled
def _first_outside(ids, height):
    outside = False
    for i in range(ids.size):
        outside |= (ids[i] < 0) | (ids[i] >= height)
    if outside:
        for i in range(ids.size):
            if ids[i] < 0 or ids[i] >= height:
                return i
    return -1


@compiled
def _clear(ids, out, padding_idx):
    for i in range(ids.size):
        if ids[i] == padding_idx:
            out[i] = 0


@compiled
def _scatter_add(table, ids, values, padding_idx):
    bad = _first_outside(ids, table.shape[0])
    if bad >= 0:
        return bad
    width = table.shape[1]
    for i in range(ids.size):
        row = ids[i]
        if row != padding_idx:
            for j in range(width):
                table[row, j] += values[i, j]
    return -1


@compiled
def _merge(ids, values, out_ids, out_values, table):
    table[:] = -1
    mask = np.uint64(table.size - 1)
    width = values.shape[1]
    count = 0
    for i in range(ids.size):
        key = ids[i]
        slot = mixed(key) & mask
        while table[slot] >= 0 and out_ids[table[slot]] != key:
            slot = slot + np.uint64(1) & mask
        place = table[slot]
        if place >= 0:
            for j in range(width):
                out_values[place, j] += values[i, j]
        else:
            table[slot] = count
            out_ids[count] = key
            for j in range(width):
                out_values[count, j] = values[i, j]
            count += 1
    return count


@compiled
def _split(ids, begins, shifts, owners, counts, ranges, ends, local, order):
    counts[:] = 0
    for i in range(ids.size):
        low, high = 0, begins.size
        while high - low > 1:
            middle = (low + high) // 2
            if begins[middle] <= ids[i]:
                low = middle
            else:
                high = middle
        ranges[i] = low
        counts[owners[low]] += 1
    start = 0
    for k in range(counts.size):
        ends[k] = start
        start += counts[k]
    for i in range(ids.size):
        owner = owners[ranges[i]]
        place = ends[owner]
        ends[owner] = place + 1
        local[place] = ids[i] + shifts[ranges[i]]
        order[place] = i


@compiled
def mixed(key):
    """Spread an id over 64 bits: neighbouring ids must not fill neighbouring slots."""
    value = np.uint64(key)
    value = (value ^ value >> np.uint64(32)) * np.uint64(0xD6E8FEB86659FD93)
    return value ^ value >> np.uint64(32)
