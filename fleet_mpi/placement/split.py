"""The rule that cuts variables into blocks of whole rows, plain and compiled; which server gets one is not decided here.

``cut`` is the rule as one reads it, for one variable. ``cut_many`` is the same rule over arrays, compiled by numba, for
the models with more variables than Python likes to count.
"""

import functools

import numpy as np

# Loading the compiled rule takes longer (about 50 ms) than cutting this many variables with the plain one.
FEW = 2000


def cut(size, width, servers, min_block_size):
    """Into how many blocks a variable goes, and the elements of each but the last, which has what is left.

    Args:
        size: elements of the variable.
        width: elements of one row of it: a block has whole rows.
        servers: the most blocks there may be.
        min_block_size: elements that a block should at least have, so a variable is cut from twice this size on.
    """
    if size == 0:
        return 1, 0
    blocks = max(1, min(servers, size // min_block_size))
    block_size = -(-size // blocks)
    block_size = -(-block_size // width) * width
    return -(-size // block_size), block_size


def cut_all(sizes, widths, servers, min_block_size):
    """``cut`` for every variable: two int64 arrays, the number of blocks and their size."""
    if len(sizes) > FEW:
        return compiled_cut()(sizes, widths, servers, min_block_size)
    return cut_plainly(sizes, widths, servers, min_block_size)


def cut_plainly(sizes, widths, servers, min_block_size):
    """The reference of ``cut_many``."""
    pairs = [cut(size, width, servers, min_block_size) for size, width in zip(sizes.tolist(), widths.tolist())]
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()


def cut_many(sizes, widths, servers, min_block_size):
    """``cut`` in one loop over arrays: the form that numba compiles."""
    counts = np.empty_like(sizes)
    blocks = np.empty_like(sizes)
    for i in range(sizes.size):
        if sizes[i] == 0:
            counts[i], blocks[i] = 1, 0
        else:
            pieces = max(1, min(servers, sizes[i] // min_block_size))
            block = (sizes[i] + pieces - 1) // pieces
            block = (block + widths[i] - 1) // widths[i] * widths[i]
            counts[i], blocks[i] = (sizes[i] + block - 1) // block, block
    return counts, blocks


@functools.cache
def compiled_cut():
    """``cut_many``, compiled: numba is loaded by the first call, not by importing this module."""
    from fleet_mpi.kernels.numba_settings import compiled

    return compiled(cut_many)
