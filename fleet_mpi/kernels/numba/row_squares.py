"""Squares of rows for host arrays: one pass over the rows in order of their ids, with a stack of open nodes."""

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.numba.update import LEAF_LEVEL, _leaf
from fleet_mpi.kernels.reference.row_squares import covering

WHOLE = [(62, 0)]  # one node above every position there can be


def square_sum_rows(ids, values):
    """All of it is one node."""
    return _sums(ids, values, 0, WHOLE)


def square_nodes_rows(ids, values, start, rows):
    """The nodes that cover the slice, each with its sum."""
    nodes = covering(start, start + rows * int(np.prod(values.shape[1:], dtype=np.int64)))
    return [(level, index, total)
            for (level, index), total in zip(nodes, _sums(ids, values, start, nodes).tolist(), strict=True)]


def _sums(ids, values, start, nodes):
    sums = np.zeros(len(nodes))
    if values.size:
        levels, indices = np.array(nodes, np.int64).T.copy()
        _fill(ids, np.argsort(ids), values.reshape(len(ids), -1), start, levels, indices, sums)
    return sums


@compiled
def _fill(ids, order, values, start, levels, indices, sums):
    """The sum of each node; the nodes are in order and cover all positions that occur."""
    buffer = np.empty(1 << LEAF_LEVEL)
    # Open parts of the current node, and where each meets the one below it: positions differ first in the highest
    # bit of this.
    parts, joins = np.empty(65), np.empty(65, np.int64)
    width = values.shape[1]
    highest = 0
    while highest < LEAF_LEVEL and 2 << highest <= width:
        highest += 1
    depth = node = last = 0
    for k in range(order.size):
        row = order[k]
        position = start + ids[row] * width
        end, at = position + width, 0
        while position < end:
            level = highest
            while (position & (1 << level) - 1) != 0 or position + (1 << level) > end:
                level -= 1
            while position >> levels[node] != indices[node]:
                sums[node] = _closed(parts, depth)
                depth = 0
                node += 1
            if depth:
                join = last ^ position
                while depth > 1 and _is_below(joins[depth - 1], join):
                    depth -= 1
                    parts[depth - 1] += parts[depth]
                joins[depth] = join
            parts[depth] = _leaf(values[row, at:at + (1 << level)], buffer)
            depth += 1
            last = position
            position += 1 << level
            at += 1 << level
    sums[node] = _closed(parts, depth)


@compiled
def _closed(parts, depth):
    """All open parts together, from the right."""
    if depth == 0:
        return 0.0
    total = parts[depth - 1]
    for k in range(depth - 2, -1, -1):
        total = parts[k] + total
    return total


@compiled
def _is_below(one, other):
    """Whether the highest bit of one number is lower than that of the other."""
    return one < other and one < one ^ other
