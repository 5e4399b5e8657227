"""Arrays of cupy put together along an axis, and parted: one launch for all pieces.

cupy would upload at every call where the pieces lie, or launch for each of them.
"""

import itertools
import math

import numpy as np

from fleet_mpi.kernels.cuda.tables import MINE, bound_over, go_together
from fleet_mpi.kernels.reference import joining

# The whole is a matrix, rows ``stride`` long; a line has a piece, and where its columns begin in the first row.
SOURCE = MINE + r"""
extern "C" __global__ void join(const long long *table, const int *pieces, long long rows, long long stride)
{
    const Mine<2> mine(table, pieces);
    const stored *piece = mine.array<stored>(0);
    stored *columns = mine.array<stored>(1);
    const long long width = mine.row[2] / rows;
    FOR_MY_PIECE(i, mine)
        columns[i / width * stride + i % width] = piece[i];
}

extern "C" __global__ void part(const long long *table, const int *pieces, long long rows, long long stride)
{
    const Mine<2> mine(table, pieces);
    stored *piece = mine.array<stored>(0);
    const stored *columns = mine.array<stored>(1);
    const long long width = mine.row[2] / rows;
    FOR_MY_PIECE(i, mine)
        piece[i] = columns[i / width * stride + i % width];
}
"""
DTYPES = ("float16", "float32", "float64", "int32", "int64")


def join(whole, pieces, axis):
    """Bind one launch."""
    run = _bound("join", whole, pieces, [piece.shape[axis] for piece in pieces], axis)
    return joining.join.reference(whole, pieces, axis) if run is None else run


def part(whole, pieces, sizes, axis):
    """Bind one launch."""
    run = _bound("part", whole, pieces, sizes, axis)
    return joining.part.reference(whole, pieces, sizes, axis) if run is None else run


def _bound(name, whole, pieces, sizes, axis):
    """The launch over all pieces that are wanted; None where the source cannot work on these."""
    rows, inner = math.prod(whole.shape[:axis]), math.prod(whole.shape[axis + 1:])
    starts = itertools.accumulate(sizes, initial=0)
    wanted = [(piece, start * inner) for piece, start in zip(pieces, starts) if piece is not None]
    if len(wanted) < 2 or not go_together([[piece] for piece, _ in wanted], like=whole, dtypes=DTYPES):
        return None
    line = whole.reshape(-1)
    lines = [(piece, line[start:]) for piece, start in wanted if piece.size]
    return bound_over(SOURCE, name, lines, np.int64(rows), np.int64(sum(sizes) * inner))
