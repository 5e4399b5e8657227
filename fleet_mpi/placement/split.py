"""The rule that cuts variables into blocks of whole rows, plain and compiled; which server gets one is not decided
here.

``cut`` is the rule as one reads it, for one variable. ``cut_many`` is the same rule over arrays, compiled by numba, for
models with more variables than Python counts quickly.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from fleet_mpi.placement.shard import Variable

# Loading the compiled rule takes longer than cutting this many variables with the plain one (tens of ms).
FEW = 20_000


def cut(size: int, width: int, most: int, min_block_size: int) -> tuple[int, int]:
    """Into how many blocks a variable goes, and the elements of each but the last, which has what is left.

    Args:
        size: elements of the variable.
        width: elements of one row; a block has whole rows.
        most: the most blocks there may be.
        min_block_size: elements that a block should at least have: a variable is cut from twice this size on.
    """
    if size == 0:
        return 1, 0
    blocks = max(1, min(most, size // min_block_size))
    block_size = _divided_up(size, blocks)
    block_size = _divided_up(block_size, width) * width
    return _divided_up(size, block_size), block_size


def _divided_up(number: int, by: int) -> int:
    return -(-number // by)


def cut_plainly(sizes: np.ndarray, widths: np.ndarray, most: int, min_block_size: int) -> tuple[np.ndarray, np.ndarray]:
    """The reference of ``cut_many``: for every variable the number of blocks and their size, as int64 arrays."""
    found = [cut(size, width, most, min_block_size) for size, width in zip(sizes.tolist(), widths.tolist())]
    both = np.array(found, np.int64).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()


def cut_many(sizes: np.ndarray, widths: np.ndarray, most: int, min_block_size: int) -> tuple[np.ndarray, np.ndarray]:
    """``cut`` in one loop over arrays: the form that numba compiles."""
    counts = np.empty_like(sizes)
    block_sizes = np.empty_like(sizes)
    for i in range(sizes.size):
        size, width = sizes[i], widths[i]
        if size == 0:
            counts[i], block_sizes[i] = 1, 0
        else:
            blocks = max(1, min(most, size // min_block_size))
            rows = ((size + blocks - 1) // blocks + width - 1) // width
            counts[i] = (size + rows * width - 1) // (rows * width)
            block_sizes[i] = rows * width
    return counts, block_sizes


@functools.cache
def compiled_cut() -> Callable[[np.ndarray, np.ndarray, int, int], tuple[np.ndarray, np.ndarray]]:
    """``cut_many``, compiled: numba is loaded by the first call, not by importing this module."""
    from fleet_mpi.kernels.numba.compiling import compiled

    return compiled(cut_many)


class Columns(NamedTuple):
    """The blocks of all variables, one array (or list) per property."""

    owners: np.ndarray       # index of the variable
    blocks: np.ndarray       # index within the variable
    names: list[str]
    offsets: np.ndarray      # in elements
    sizes: np.ndarray
    row_begins: np.ndarray
    rows: np.ndarray
    counts: np.ndarray       # blocks of the variable

    def only(self, chosen: np.ndarray) -> Columns:
        """The columns of the variables for which ``chosen`` (an array of bools) says so."""
        kept = chosen[self.owners]
        numbers = {field: getattr(self, field)[kept] for field in self._fields if field != "names"}
        numbers["owners"] = (np.cumsum(chosen) - 1)[numbers["owners"]]
        return Columns(**numbers, names=list(itertools.compress(self.names, kept)))

    def as_lists(self, variables: Sequence[Variable]) -> tuple[list[Any], ...]:
        """The columns of a Shard up to its server, as Python lists."""
        owners, rows = self.owners.tolist(), self.rows.tolist()
        names, shapes, _ = (list(map(column.__getitem__, owners)) for column in zip(*variables)) \
            if variables else ([], [], [])
        for at in np.flatnonzero(self.counts > 1).tolist():
            shapes[at] = (rows[at], *shapes[at][1:])
        return (names, self.blocks.tolist(), self.names, self.offsets.tolist(), self.sizes.tolist(),
                self.row_begins.tolist(), rows, shapes)


def columns_of(variables: Sequence[Variable], most: int, min_block_size: int) -> Columns:
    """Cut every variable into ``most`` blocks at most; the blocks in the order of the variables."""
    shapes = [variable.shape for variable in variables]
    sizes = np.array(list(map(math.prod, shapes)), np.int64)
    widths = np.array([math.prod(shape[1:]) for shape in shapes], np.int64)
    # A block larger than any variable means the same as one that fits 64 bits, which the arrays have.
    cut_all = compiled_cut() if len(variables) > FEW else cut_plainly
    counts, block_sizes = cut_all(sizes, widths, most, min(min_block_size, 1 << 62))
    owners = np.repeat(np.arange(len(variables)), counts)
    blocks = np.arange(len(owners)) - (np.cumsum(counts) - counts)[owners]
    offsets = blocks * block_sizes[owners]
    taken = np.minimum(block_sizes[owners], sizes[owners] - offsets)
    widths, counts = np.maximum(widths, 1)[owners], counts[owners]
    # A variable without elements may still have rows, of no width: it is one block, and that has them all.
    lengths = np.array([shape[0] if shape else 1 for shape in shapes], np.int64)[owners]
    rows = np.where(counts == 1, lengths, taken // widths)
    return Columns(owners, blocks, _names(variables, owners, blocks, counts), offsets, taken, offsets // widths, rows,
                   counts)


def _names(variables: Sequence[Variable], owners: np.ndarray, blocks: np.ndarray, counts: np.ndarray) -> list[str]:
    whole = [variable.name for variable in variables]
    names = list(map(whole.__getitem__, owners.tolist()))
    cut_ones = np.flatnonzero(counts > 1)
    for at, block in zip(cut_ones.tolist(), blocks[cut_ones].tolist()):
        names[at] = f"{names[at]}.block{block}"
    return names
