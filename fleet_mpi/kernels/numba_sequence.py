"""The sequence kernels for host arrays. Same names, arguments and results as ``sequence.py``."""

import numpy as np

from fleet_mpi.kernels.numba_settings import compiled


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
    width = x.shape[1]
    for i in range(offsets.size - 1):
        begin, end = offsets[i], offsets[i + 1]
        if begin == end:
            out[i] = pad
            index[i] = -1
            continue
        for j in range(width):
            out[i, j] = x[begin, j]
            index[i, j] = begin
        for row in range(begin + 1, end):
            for j in range(width):
                value, best = x[row, j], out[i, j]
                wins = (value > best) | ((value != value) & (best == best))
                out[i, j] = value if wins else best
                index[i, j] = row if wins else index[i, j]


@compiled
def pool_max_grad(dout, index, dx):
    """Zeros, and one store for each number of the output."""
    dx[:] = 0
    for i in range(dout.shape[0]):
        for j in range(dout.shape[1]):
            if index[i, j] >= 0:
                dx[index[i, j], j] = dout[i, j]


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
    """Row by row, each window's rows one behind the other."""
    length, width = out.shape[1], x.shape[1]
    for i in range(offsets.size - 1):
        begin, end = offsets[i], offsets[i + 1]
        for row in range(begin, end):
            for k in range(length):
                source = row + start + k
                if begin <= source < end:
                    for j in range(width):
                        out[row, k, j] = x[source, j]
                else:
                    for j in range(width):
                        out[row, k, j] = pad


@compiled
def add_windows(dout, offsets, start, dx):
    """Gathers for each row what was copied from it."""
    length, width = dout.shape[1], dx.shape[1]
    for i in range(offsets.size - 1):
        begin, end = offsets[i], offsets[i + 1]
        for row in range(begin, end):
            for j in range(width):
                dx[row, j] = 0
            for k in range(length):
                target = row - start - k
                if begin <= target < end:
                    for j in range(width):
                        dx[row, j] += dout[target, k, j]
