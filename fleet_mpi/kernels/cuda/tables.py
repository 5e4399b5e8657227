"""Launches over many arrays at once: their addresses lie in a table, uploaded once.

A block works on a piece of one line of the table.
"""

import functools

import numpy as np

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels.cuda.compiling import THREADS, fits, function

PIECE = 16 * THREADS  # elements of a block

# A row of ``table`` has the addresses of a line's arrays, then their size. A row of ``pieces`` is a block's: the row of
# the table, and the number of the piece in it.
MINE = r"""
#define PIECE 4096

template <int ARRAYS> struct Mine {
    const long long *row, start, stop;
    __device__ Mine(const long long *table, const int *pieces)
        : row(table + pieces[2 * blockIdx.x] * (ARRAYS + 1)), start((long long)pieces[2 * blockIdx.x + 1] * PIECE),
          stop(start + PIECE < row[ARRAYS] ? start + PIECE : row[ARRAYS]) {}
    template <class T = real> __device__ T *array(int number) const { return (T *)row[number]; }
};

#define FOR_MY_PIECE(i, mine) for (long long i = mine.start + threadIdx.x; i < mine.stop; i += blockDim.x)
"""


def go_together(lines, like=None, dtypes=("float32", "float64")):
    """Whether one launch can work on all lines of arrays: contiguous, of one of these types, and of that of ``like``.

    The lines must lie apart.
    """
    first = lines[0][0] if like is None else like
    return any(line[0].size for line in lines) and all(fits(first, *line, dtypes=dtypes) for line in lines)


def bound_over(text, name, lines, *arguments, like=None):
    """The launch of function ``name`` of a source over all lines of arrays, for the type of ``like`` or the first.

    The function gets the table, the pieces and the arguments. The table keeps no array alive, so the call does.
    """
    xp = module_of(lines[0][0])
    table = xp.asarray(np.array([[*(array.data.ptr for array in line), line[0].size] for line in lines], np.int64))
    pieces = [(row, piece) for row, line in enumerate(lines) for piece in range(-(-line[0].size // PIECE))]
    arguments = table, xp.asarray(np.array(pieces, np.int32)), *arguments
    compiled = function(text, name, lines[0][0] if like is None else like)
    run = functools.partial(compiled, (len(pieces),), (THREADS,), arguments)
    run.lines = lines
    return run
