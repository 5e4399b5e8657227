"""Rows of ragged sequences: moving them, and sums, extremes, softmax and windows within each sequence.

``offsets`` (int64 [n + 1]) says that sequence i is the rows from offsets[i] up to offsets[i + 1]; it may be
empty. Rows lie in contiguous matrices [rows, width], one number per row in ``softmax``. Outputs are
written fully. Knows no LoD levels and no ops.
"""

import numpy as np

from fleet_mpi.arrays import is_host, module_of, to_host
from fleet_mpi.kernels import kernel
from fleet_mpi.kernels.reference.rows import add_at


def sequence_of_rows(offsets, rows):
    """For each of so many rows the number of its sequence."""
    xp = module_of(offsets)
    # From the right: of several sequences that start at a row, the last is the one that is not empty.
    return xp.searchsorted(offsets, xp.arange(rows, dtype=offsets.dtype), side="right") - 1


@kernel
def take_rows(x, rows, pad, out):
    """out[i] = x[rows[i]], or ``pad`` everywhere where rows[i] is negative."""
    xp = module_of(x)
    if not x.shape[0]:
        out.fill(pad)
        return
    is_row = rows >= 0
    out[...] = xp.where(is_row[:, None], x[xp.where(is_row, rows, 0)], pad)


@kernel
def add_rows(values, rows, out):
    """out[r] = the sum of values[i] over all i with rows[i] == r, in order; negative rows count nowhere."""
    out.fill(0)
    kept = rows >= 0
    add_at(out, rows[kept], values[kept])


@kernel
def pool_sum(x, offsets, divisors, pad, out):
    """out[i] = the sum of sequence i's rows / divisors[i]; ``pad`` for an empty sequence."""
    xp = module_of(x)
    total = xp.zeros_like(out)
    add_at(total, sequence_of_rows(offsets, x.shape[0]), x)
    is_empty = offsets[1:] == offsets[:-1]
    out[...] = xp.where(is_empty[:, None], pad, total / divisors[:, None])


@kernel
def pool_sum_grad(dout, offsets, divisors, dx):
    """Every row of sequence i gets dout[i] / divisors[i]."""
    dx[...] = (dout / divisors[:, None])[sequence_of_rows(offsets, dx.shape[0])]


@kernel
def pool_max(x, offsets, pad, out, index):
    """The largest of each column within each sequence, and its row (the first of equals).

    An empty sequence gives ``pad`` and row -1; a NaN is larger than all.
    """
    xp = module_of(x)
    rows = x.shape[0]
    of_row = sequence_of_rows(offsets, rows)
    is_empty = (offsets[1:] == offsets[:-1])[:, None]
    out.fill(pad)
    index.fill(rows)
    if not rows:
        index.fill(-1)
        return
    # Start from each sequence's first row; that of an empty one is any row.
    first = xp.minimum(offsets[:-1], rows - 1)
    out[...] = x[first]
    _fold_rows(xp.maximum, out, x, offsets)
    is_largest = (x == out[of_row]) | (x != x)
    numbers = xp.arange(rows, dtype=index.dtype)[:, None]
    _fold_rows(xp.minimum, index, xp.where(is_largest, numbers, rows), offsets)
    out[...] = xp.where(is_empty, pad, out)
    index[...] = xp.where(is_empty, -1, index)


@kernel
def pool_max_grad(dout, index, offsets, dx):
    """dout[i, j] goes to row index[i, j] of column j; all else is zero."""
    xp = module_of(dout)
    of_row = sequence_of_rows(offsets, dx.shape[0])
    numbers = xp.arange(dx.shape[0], dtype=index.dtype)[:, None]
    dx[...] = xp.where(index[of_row] == numbers, dout[of_row], 0)


@kernel
def softmax(x, offsets, out):
    """exp(x) divided by its sum over the sequence; x and out are [rows]."""
    xp = module_of(x)
    of_row = sequence_of_rows(offsets, x.shape[0])
    count = offsets.shape[0] - 1
    largest = xp.full((count,), -xp.inf, x.dtype)
    if is_host(x):
        np.maximum.at(largest, of_row, x)
    else:
        index = xp.empty((count, 1), "int32")
        pool_max(x.reshape(-1, 1), offsets, -xp.inf, largest.reshape(-1, 1), index)
    xp.exp(x - largest[of_row], out)
    total = xp.zeros((count,), x.dtype)
    add_at(total, of_row, out)
    xp.divide(out, total[of_row], out)


@kernel
def softmax_grad(out, dout, offsets, dx):
    """dx = out * (dout - the sum of out * dout over the sequence)."""
    xp = module_of(out)
    of_row = sequence_of_rows(offsets, out.shape[0])
    total = xp.zeros((offsets.shape[0] - 1,), out.dtype)
    add_at(total, of_row, out * dout)
    xp.multiply(out, dout - total[of_row], dx)


@kernel
def windows(x, offsets, start, pad, out):
    """out[i, k] = row i + start + k, or ``pad`` where that is outside row i's sequence; [rows, length, width]."""
    xp = module_of(x)
    rows = x.shape[0]
    begin, end = _bounds(offsets, rows)
    for k in range(out.shape[1] if rows else 0):
        source = xp.arange(rows, dtype=offsets.dtype) + (start + k)
        inside = (source >= begin) & (source < end)
        out[:, k] = xp.where(inside[:, None], x[xp.where(inside, source, 0)], pad)


@kernel
def add_windows(dout, offsets, start, dx):
    """The gradient of ``windows``: each row gets the sum over the places it was copied to, in order of rows."""
    xp = module_of(dout)
    rows = dx.shape[0]
    begin, end = _bounds(offsets, rows)
    dx.fill(0)
    for k in reversed(range(dout.shape[1] if rows else 0)):
        target = xp.arange(rows, dtype=offsets.dtype) - (start + k)
        inside = (target >= begin) & (target < end)
        dx += xp.where(inside[:, None], dout[xp.where(inside, target, 0), k], 0)


def _bounds(offsets, rows):
    """For each row where its sequence begins and ends."""
    of_row = sequence_of_rows(offsets, rows)
    return offsets[of_row], offsets[of_row + 1]


def _fold_rows(combine, out, x, offsets):
    """Let out[i] be ``combine`` (a ufunc) of it and of all rows of sequence i.

    cupy's ``maximum.at`` passes over NaN and rounds float64 to float32: on a device the first rows of all sequences
    come first, then the second ones, and so on. Waits to know how many there are.
    """
    xp = module_of(x)
    if xp is np:
        combine.at(out, sequence_of_rows(offsets, x.shape[0]), x)
        return
    lengths = offsets[1:] - offsets[:-1]
    for number in range(int(to_host(lengths.max())) if lengths.size else 0):
        has_one = lengths > number
        row = x[xp.where(has_one, offsets[:-1] + number, 0)]
        out[...] = xp.where(has_one[:, None], combine(out, row), out)
