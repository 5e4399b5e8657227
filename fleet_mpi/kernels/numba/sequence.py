"""The sequence kernels for host arrays. Same names, arguments and results as ``sequence.py``."""

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled


def take_rows(x, rows, pad, out):
    """numpy's ``take`` (its row copies overlap their cache misses), then the padding."""
    if x.shape[0]:
        np.take(x, rows, axis=0, out=out, mode="clip")  # clip: the other modes buffer the output
    _pad_rows(rows, pad, out)


@compiled
def _pad_rows(rows, pad, out):
    for i in range(rows.size):
        if rows[i] < 0:
            out[i] = pad


@compiled
def add_rows(values, rows, out):
    """One pass over the values, in order."""
    width = out.shape[1]
    out[:] = 0
    for i in range(rows.size):
        row = rows[i]
        if row >= 0:
            for j in range(width):
                out[row, j] += values[i, j]


@compiled
def pool_sum(x, offsets, divisors, pad, out):
    """Row after row into the output's row, which stays in the cache."""
    width = x.shape[1]
    for i in range(offsets.size - 1):
        begin, end = offsets[i], offsets[i + 1]
        if begin == end:
            out[i] = pad
            continue
        for j in range(width):
            out[i, j] = x[begin, j]
        for row in range(begin + 1, end):
            for j in range(width):
                out[i, j] += x[row, j]
        if divisors[i] != 1:
            for j in range(width):
                out[i, j] /= divisors[i]


@compiled
def pool_sum_grad(dout, offsets, divisors, dx):
    """One division per sequence and column, then copies."""
    width = dx.shape[1]
    for i in range(offsets.size - 1):
        begin, end = offsets[i], offsets[i + 1]
        if begin == end:
            continue
        for j in range(width):
            dx[begin, j] = dout[i, j] / divisors[i]
        for row in range(begin + 1, end):
            for j in range(width):
                dx[row, j] = dx[begin, j]


@compiled
def pool_max(x, offsets, pad, out, index):
    """Starts with the first row; a later one wins if larger, or no number."""
    for i in range(offsets.size - 1):
        begin, end = offsets[i], offsets[i + 1]
        if begin == end:
            out[i] = pad
            index[i] = -1
            continue
        out[i] = x[begin]
        index[i] = begin
        for row in range(begin + 1, end):
            _take_larger(x[row], np.int32(row), out[i], index[i])


@compiled
def _take_larger(values, row, best, index):
    for j in range(best.size):
        value, before = values[j], best[j]
        wins = (value > before) | ((value != value) & (before == before))
        best[j] = value if wins else before
        index[j] = row if wins else index[j]


@compiled
def pool_max_grad(dout, index, offsets, dx):
    """Row by row: a choice without branches, which is faster than zeros and single stores."""
    width = dx.shape[1]
    for i in range(offsets.size - 1):
        for row in range(offsets[i], offsets[i + 1]):
            number = np.int32(row)
            for j in range(width):
                dx[row, j] = dout[i, j] if index[i, j] == number else 0


@compiled
def softmax(x, offsets, out):
    """Three short passes per sequence: largest, exponentials and their sum, quotients."""
    for i in range(offsets.size - 1):
        begin, end = offsets[i], offsets[i + 1]
        if begin == end:
            continue
        largest = x[begin]
        for row in range(begin + 1, end):
            largest = max(largest, x[row])
        total = x.dtype.type(0)
        for row in range(begin, end):
            out[row] = np.exp(x[row] - largest)
            total += out[row]
        for row in range(begin, end):
            out[row] /= total


@compiled
def softmax_grad(out, dout, offsets, dx):
    """Two passes per sequence."""
    for i in range(offsets.size - 1):
        begin, end = offsets[i], offsets[i + 1]
        total = dout.dtype.type(0)
        for row in range(begin, end):
            total += out[row] * dout[row]
        for row in range(begin, end):
            dx[row] = out[row] * (dout[row] - total)


@compiled
def windows(x, offsets, start, pad, out):
    """A window's rows lie one behind the other in x too, so each window is one copy with its ends padded."""
    length, width = out.shape[1], x.shape[1]
    source, target = x.reshape(-1), out.reshape(out.shape[0], -1)
    for i in range(offsets.size - 1):
        begin, end = offsets[i], offsets[i + 1]
        for row in range(begin, end):
            first, last = _inside(row + start, length, begin, end)
            if first > 0:
                target[row, :first * width] = pad
            if last < length:
                target[row, last * width:] = pad
            shift = (row + start) * width
            _copy(source[shift + first * width:shift + last * width], target[row, first * width:last * width])


@compiled
def add_windows(dout, offsets, start, dx):
    """Window by window, added to the rows it was copied from."""
    length, width = dout.shape[1], dx.shape[1]
    source, target = dout.reshape(dout.shape[0], -1), dx.reshape(-1)
    dx[:] = 0
    for i in range(offsets.size - 1):
        begin, end = offsets[i], offsets[i + 1]
        for row in range(begin, end):
            first, last = _inside(row + start, length, begin, end)
            shift = (row + start) * width
            _add(source[row, first * width:last * width], target[shift + first * width:shift + last * width])


# Loops from 0 over slices: numba checks any other index for being negative, and then does not vectorise.
@compiled
def _copy(source, target):
    for j in range(target.size):
        target[j] = source[j]


@compiled
def _add(source, target):
    for j in range(target.size):
        target[j] += source[j]


@compiled
def _inside(row, length, begin, end):
    """Which of ``length`` rows from ``row`` on lie in [begin, end): the first, and behind the last."""
    first = min(max(begin - row, 0), length)
    return first, max(min(end - row, length), first)
