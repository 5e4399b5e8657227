"""First values of rows for host arrays: words for a piece of the rows, then the loops that ``random`` shapes them with.

Same names, arguments and bits as ``row_draws.py``. A row begins a block of four words, so short rows are drawn longer.
"""

import numpy as np

from fleet_mpi.kernels.numba import random
from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.reference.random import largest_below


def uniform(ids, out, key, low, high):
    """One product and one sum per word."""
    top = largest_below(high, low, out.dtype)
    _draw(ids, out, key, random._spread, float(low), float(high) - float(low), top)


def normal(ids, out, key, mean, std):
    """Box and Muller over whole pairs: a row begins one."""
    _draw(ids, out, key, random._bell, float(mean), float(std))


def truncated_normal(ids, out, key, mean, std):
    """One rational function per word."""
    _draw(ids, out, key, random._cut_bell, float(mean), float(std))


def _draw(ids, out, key, shape_words, *arguments):
    """Some rows at a time, so that words stay within the second-level cache."""
    width = out.shape[1]
    padded = width + 3 & ~3
    rows = max(1, random.PIECE // max(padded, 1))
    words = np.empty(min(rows, len(ids)) * padded, np.uint32)
    drawn = np.empty(words.size, out.dtype)
    for begin in range(0, len(ids), rows):
        part = ids[begin:begin + rows]
        size = len(part) * padded
        _fill(part, padded >> 2, np.uint64(key), words[:size])
        shape_words(words[:size], 0, drawn[:size], *arguments)
        out[begin:begin + rows] = drawn[:size].reshape(len(part), padded)[:, :width]


@compiled
def _fill(ids, blocks, key, words):
    """The words of the first blocks of each id's stream."""
    lanes = np.empty((4, ids.size * blocks), np.uint64)
    for i in range(ids.size):
        stream = np.uint64(ids[i])
        for b in range(blocks):
            lanes[0, i * blocks + b] = b
            lanes[1, i * blocks + b] = 0
            lanes[2, i * blocks + b] = stream & random.LOW_HALF
            lanes[3, i * blocks + b] = stream >> random.HALF
    random._shuffle(lanes, key, words)
