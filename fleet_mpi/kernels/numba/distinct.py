"""Distinct numbers for host arrays. Same name, arguments and results as ``reference/distinct.py``."""

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled


@compiled
def distinct_numbers(words, below, out):
    """Each column's numbers are kept in order beside it; the walk that moves a number on finds its place there."""
    count, columns = out.shape
    taken = np.empty(count, np.int64)
    for j in range(columns):
        for i in range(count):
            number = np.int64(np.uint64(words[i, j]) * np.uint64(below - i) >> np.uint64(32))
            place = 0
            while place < i and taken[place] <= number:
                number += 1
                place += 1
            for later in range(i, place, -1):
                taken[later] = taken[later - 1]
            taken[place] = number
            out[i, j] = number
