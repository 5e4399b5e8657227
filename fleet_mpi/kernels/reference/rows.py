"""Rows of tables by id: gather, scatter, and the sum of rows that share an id.

Ids are int64 everywhere. A kernel that meets an id outside its table returns the position of the first
one and changes nothing; ``gather`` and ``scatter_add`` turn that into an error. Tables may have any
number of dimensions, a row being ``table[id]``. Knows no optimizers and no variables.
"""

import numpy as np

from fleet_mpi.arrays import module_of, to_host
from fleet_mpi.errors import ProgramError
from fleet_mpi.kernels import kernel

NO_PADDING = -1
ALL_INSIDE = -1


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
def gather_rows(table, ids, out, padding_idx):
    """Fill ``out`` (ids.shape + row) with rows of ``table``; the first bad position, or -1.

    Rows of ``padding_idx`` come as zeros. On a device the check waits for the ids.
    """
    xp = module_of(table)
    bad = first_outside.reference(ids, table.shape[0])
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
    """Add each of ``values`` (ids.shape + row) to its row of ``table``, but none to ``padding_idx``; the first bad
    position, or -1.

    Sums in order of occurrence on the host; on a device the order of equal ids is the hardware's.
    """
    xp = module_of(table)
    bad = first_outside.reference(ids, table.shape[0])
    if bad == ALL_INSIDE:
        line = ids.reshape(-1)
        rows = values.reshape((line.shape[0],) + tuple(table.shape[1:]))
        kept = line != padding_idx
        xp.add.at(table, line[kept], rows[kept])
    return bad


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
    xp.add.at(out_values, rank[inverse.reshape(-1)][is_repeat], values[is_repeat])
    return count


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
