"""Sums of squares over some rows of a table, to the bits of ``update.square_sum`` over all of it.

The tree of squares goes over positions. Rows that do not occur count as zero, and adding zero changes nothing,
so only the nodes above rows that occur are computed: two of them meet at their lowest common parent. Values are
[n, ...], their ids unique and in any order.
"""

from fleet_mpi.arrays import module_of, to_host
from fleet_mpi.kernels import kernel


@kernel
def square_sum_rows(ids, values):
    """The sum of squares of a table of which only the rows ``ids`` are not zero, [1] float64."""
    return _climbed(*_positions_and_squares(ids, values, 0))


@kernel
def square_nodes_rows(ids, values, start, rows):
    """What ``square_nodes`` returns for a slice of a table: ``rows`` rows from position ``start`` on.

    ``ids`` count within the slice; rows that are not among them are zero.
    """
    positions, squares = _positions_and_squares(ids, values, start)
    nodes = []
    for level, index in covering(start, start + rows * _width(values)):
        first = index << level
        inside = (positions >= first) & (positions < first + (1 << level))
        nodes.append((level, index, float(to_host(_climbed(positions[inside], squares[inside]))[0])))
    return nodes


def covering(start, end):
    """(level, index) of the largest nodes of the tree that together are the positions from ``start`` to ``end``."""
    found = []
    while start < end:
        level = (end - start).bit_length() - 1
        if start:
            level = min(level, (start & -start).bit_length() - 1)
        found.append((level, start >> level))
        start += 1 << level
    return found


def _width(values):
    width = 1
    for size in values.shape[1:]:
        width *= size
    return width


def _positions_and_squares(ids, values, start):
    """Every element's position, in order, and its square."""
    xp, width = module_of(ids), _width(values)
    order = xp.argsort(ids)
    positions = ids[order].reshape(-1, 1) * width + (xp.arange(width, dtype="int64") + start)
    wide = values[order].reshape(-1).astype("float64")
    return positions.reshape(-1), wide * wide


def _climbed(positions, squares):
    """The sum up the tree: as long as there are two, those with one parent are added, left to right."""
    xp = module_of(squares)
    if not squares.shape[0]:
        return xp.zeros((1,), "float64")
    while squares.shape[0] > 1:
        positions = positions >> 1
        is_right = xp.zeros(positions.shape, bool)
        is_right[1:] = positions[1:] == positions[:-1]
        total = squares[~is_right]
        place = xp.cumsum(~is_right) - 1
        total[place[is_right]] += squares[is_right]
        positions, squares = positions[~is_right], total
    return squares
