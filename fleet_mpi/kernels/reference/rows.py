"""Rows of tables by id: gather, scatter, and the sum of rows that share an id.

Ids are int64 everywhere. On the host a kernel that meets an id outside its table returns the position of the first
one and changes nothing; ``gather`` and ``scatter_add`` turn that into an error. On a device that would cost a wait in
every call: ``note_outside`` writes there into memory that is read later. Tables may have any number of dimensions, a
row being ``table[id]``. Knows no optimizers and no variables.
"""

import numpy as np

from fleet_mpi.arrays import is_host, module_of, to_host
from fleet_mpi.errors import ProgramError
from fleet_mpi.kernels import kernel

NO_PADDING = -1
ALL_INSIDE = -1
# What ``note_outside`` fills: the number of who noted (0: nobody), position, id; the rest is for the CUDA version.
NOTE_SIZE = 5


def gather(table, ids, out, padding_idx=NO_PADDING):
    """out[i] = table[ids[i]], zero where the id is ``padding_idx``; ProgramError for an id outside the table."""
    refuse_bad(gather_rows(table, ids, out, padding_idx), ids, table.shape[0])


def scatter_add(table, ids, values, padding_idx=NO_PADDING):
    """table[ids[i]] += values[i], in order; ProgramError, and no change, for an id outside the table."""
    refuse_bad(scatter_add_rows(table, ids, values, padding_idx), ids, table.shape[0])


def check_ids(ids, height):
    """ProgramError if an id is not a row of a table of this height."""
    refuse_bad(first_outside(ids, height), ids, height)


def refuse_bad(position, ids, height):
    """Turn the position that a kernel returned into an error, or into nothing."""
    if position != ALL_INSIDE:
        wrong = int(to_host(ids.reshape(-1)[position:position + 1])[0])
        raise ProgramError(
            f"id {wrong} at position {position} of {ids.size} is outside the table of {height} rows: "
            f"expected 0 <= id < {height}. Make the table as high as the largest id plus one, or mend the ids.")


def merge_scratch(count, xp=np):
    """A table that ``merge_rows`` may use for up to ``count`` ids: keep it where the call repeats."""
    return xp.empty(scratch_size(count), np.int32)


def scratch_size(count):
    """The smallest power of two that leaves at least half of the hash table free."""
    return 1 << max(2 * count - 1, 1).bit_length()


@kernel
def first_outside(ids, height):
    """The position of the first id that is not in [0, height), or -1."""
    outside = ((ids < 0) | (ids >= height)).reshape(-1)
    found = to_host(module_of(ids).flatnonzero(outside)[:1])
    return int(found[0]) if found.size else ALL_INSIDE


@kernel
def note_outside(ids, lowest, height, spared, number, note):
    """Let ``note`` say (number, position, id) of the first id that is neither in [lowest, height) nor ``spared``; what
    it says already stays.

    Nobody waits. ``note`` is int64 [NOTE_SIZE], zeros at first.
    """
    xp, line = module_of(ids), ids.reshape(-1)
    if not line.size:
        return
    outside = ((line < lowest) | (line >= height)) & (line != spared)
    place = xp.argmax(outside).reshape(1)
    is_first = outside[place] & (note[:1] == 0)
    found = xp.concatenate([xp.full(1, number, note.dtype), place.astype(note.dtype), line[place].astype(note.dtype)])
    note[:3] = xp.where(is_first, found, note[:3])


@kernel
def gather_rows(table, ids, out, padding_idx):
    """Fill ``out`` (ids.shape + row) with rows of ``table``; the first bad position, or -1.

    Rows of ``padding_idx`` come as zeros. Only the host looks for bad ids; on a device they bring any row.
    """
    xp = module_of(table)
    bad = _first_on_host(ids, table.shape[0])
    if bad == ALL_INSIDE:
        line = ids.reshape(-1)
        rows = out.reshape((line.shape[0],) + tuple(table.shape[1:]))
        rows[...] = table[line]
        if padding_idx >= 0:
            is_padding = (line == padding_idx).reshape((-1,) + (1,) * (rows.ndim - 1))
            rows[...] = xp.where(is_padding, xp.zeros_like(rows), rows)
    return bad


@kernel
def scatter_add_rows(table, ids, values, padding_idx):
    """Add each of ``values`` (ids.shape + row) to its row of ``table``, in order of occurrence, but none to
    ``padding_idx``; the first bad position, or -1.

    Only the host looks for bad ids; on a device they are added nowhere.
    """
    bad = _first_on_host(ids, table.shape[0])
    if bad == ALL_INSIDE:
        line = ids.reshape(-1)
        rows = values.reshape((line.shape[0],) + tuple(table.shape[1:]))
        kept = line != padding_idx
        if is_host(table):
            np.add.at(table, line[kept], rows[kept])
        else:
            kept &= (line >= 0) & (line < table.shape[0])
            _add_in_rounds(table, line[kept], rows[kept])
    return bad


def add_at(target, index, values):
    """target[index] += values, with the values of a place that is named repeatedly added up in order of occurrence.

    numpy's ``add.at``; cupy's adds in the order in which the hardware comes along, other bits in every run. ``index``
    names rows: an array, or a tuple of arrays for the leading dimensions; on a device its numbers are not negative.
    """
    xp = module_of(target)
    if xp is np:
        np.add.at(target, index, values)
        return
    *leading, last = xp.broadcast_arrays(*index) if isinstance(index, tuple) else (index,)
    depth = len(leading) + 1
    line = last
    for i, part in enumerate(leading):
        line = line + part * int(np.prod(target.shape[i + 1:depth]))
    line, row = line.reshape(-1).astype("int64"), tuple(target.shape[depth:])
    table = target if target.flags.c_contiguous else target.copy(order="C")
    rows = xp.ascontiguousarray(xp.broadcast_to(values, last.shape + row))
    scatter_add_rows(table.reshape((-1,) + row), line, rows.reshape(line.shape + row), NO_PADDING)
    if table is not target:
        target[...] = table


@kernel
def merge_rows(ids, values, out_ids, out_values, scratch):
    """Sum rows of equal id in order of occurrence; ids in order of first occurrence. Returns their count.

    ``out_ids`` and ``out_values`` must hold as many rows as ``ids``, only the first ``count`` are written.
    ``scratch`` is from ``merge_scratch``, its content is lost.
    """
    xp = module_of(ids)
    unique, first, inverse = xp.unique(ids, return_index=True, return_inverse=True)
    count = int(unique.shape[0])
    order = xp.argsort(first)
    rank = xp.empty_like(order)
    rank[order] = xp.arange(count, dtype=order.dtype)
    out_ids[:count] = unique[order]
    out_values[:count] = values[first[order]]
    is_repeat = xp.ones(ids.shape, dtype=bool)
    is_repeat[first] = False
    add_at(out_values, rank[inverse.reshape(-1)][is_repeat], values[is_repeat])
    return count


@kernel
def total_rows(ids, values, height, out_ids, out_values):
    """For every row the sum of all rows of its id, in order of occurrence; ``out_ids`` are the ids.

    What a device takes in the place of ``merge_rows``: nobody waits to know how many ids differ. An id outside
    [0, height) becomes the first one inside, with its sum; row 0 with zeros where there is none.
    """
    if not ids.size:
        return
    xp = module_of(ids)
    unique, inverse = xp.unique(ids, return_inverse=True)
    totals = xp.zeros((unique.shape[0], *values.shape[1:]), values.dtype)
    add_at(totals, inverse.reshape(-1), values)
    inside = (ids >= 0) & (ids < height)
    meant, is_any = xp.where(inside, ids, ids[xp.argmax(inside).reshape(1)]), inside.any()
    out_ids[...] = xp.where(is_any, meant, 0)
    found = totals[xp.searchsorted(unique, meant)]
    out_values[...] = xp.where(is_any, found, xp.zeros_like(found))


@kernel
def split_ids(ids, begins, shifts, owners, counts, local, order):
    """Sort ids by who owns them, keeping their order otherwise.

    Range ``k`` goes from begins[k], the first being 0, up to the next one; its owner is owners[k], whose own number
    of an id is id + shifts[k]. Fills ``counts`` per owner, ``local`` with the owners' numbers and ``order`` with the
    positions they were at.
    """
    xp = module_of(ids)
    ranges = xp.searchsorted(begins, ids, side="right") - 1
    owner = owners[ranges]
    # Made unique, so that no stable sort is needed.
    order[...] = xp.argsort(owner * (ids.shape[0] + 1) + xp.arange(ids.shape[0], dtype="int64"))
    local[...] = (ids + shifts[ranges])[order]
    counts[...] = xp.bincount(owner, minlength=counts.shape[0])


def _first_on_host(ids, height):
    return first_outside.reference(ids, height) if is_host(ids) else ALL_INSIDE


def _add_in_rounds(table, ids, rows):
    """The first row of every id, then the second of every id that has one, and so on: sums in order of occurrence.

    For devices without a version of their own. Waits to know how many rounds there are.
    """
    xp = module_of(table)
    order = xp.argsort(ids, kind="stable")
    ordered = ids[order]
    turn = xp.arange(ids.size) - xp.searchsorted(ordered, ordered)
    for number in range(int(to_host(turn.max())) + 1 if ids.size else 0):
        some = order[turn == number]
        table[ids[some]] += rows[some]
