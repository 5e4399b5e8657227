"""Pooling on the host: plane by plane, a piece being a block of planes whose number follows from the shape."""

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.reference import pooling
from fleet_mpi.kernels.reference.pooling import check_shapes, three
from fleet_mpi.kernels.threads import for_each, pieces

LEAST_PIECE = 32768  # numbers of the data; a piece of fewer is done before another thread wakes up
LONGEST_RUN = 8  # columns of a window up to which maxima of neighbours are taken for all columns at once


def max_pool_forward(x, out, index, windows):
    """Bind the maxima and their places over host arrays."""
    if not _usable(x, out, index):
        return pooling.max_pool_forward.reference(x, out, index, windows)
    check_shapes(x, out, windows)
    sizes, counts, bounds, _ = _layout(windows)
    values, made, places = (array.reshape((-1,) + shape) for array, shape in (
        (x, sizes), (out, counts), (index, counts)))
    lowest = x.dtype.type(np.finfo(x.dtype).min)
    return _over_planes(values, lambda part: _max_forward(values[part], made[part], places[part], *bounds, lowest))


def max_pool_backward(dout, index, dx, windows):
    """Bind the gradient of the maxima over host arrays."""
    if not _usable(dout, dx, index):
        return pooling.max_pool_backward.reference(dout, index, dx, windows)
    planes = dout.shape[0] * dout.shape[1]
    given, places, made = (array.reshape(planes, -1) for array in (dout, index, dx))
    return _over_planes(made, lambda part: _max_backward(given[part], places[part], made[part]))


def avg_pool_forward(x, out, windows):
    """Bind the averages over host arrays."""
    if not _usable(x, out):
        return pooling.avg_pool_forward.reference(x, out, windows)
    check_shapes(x, out, windows)
    sizes, counts, bounds, positions = _layout(windows)
    values, made = x.reshape((-1,) + sizes), out.reshape((-1,) + counts)
    return _over_planes(values, lambda part: _avg_forward(values[part], made[part], *bounds, positions))


def avg_pool_backward(dout, dx, windows):
    """Bind the gradient of the averages over host arrays."""
    if not _usable(dout, dx):
        return pooling.avg_pool_backward.reference(dout, dx, windows)
    check_shapes(dx, dout, windows)
    sizes, counts, bounds, positions = _layout(windows)
    given, made = dout.reshape((-1,) + counts), dx.reshape((-1,) + sizes)
    return _over_planes(made, lambda part: _avg_backward(given[part], made[part], *bounds, positions))


def _usable(first, second, index=None):
    return (first.dtype.char in "fd" and first.dtype == second.dtype
            and first.flags.c_contiguous and second.flags.c_contiguous
            and (index is None or (index.dtype == np.int32 and index.flags.c_contiguous)))


def _layout(windows):
    windows = three(windows)
    sizes = tuple(window.size for window in windows)
    counts = tuple(len(window.starts) for window in windows)
    bounds = [np.stack([window.starts, window.ends], axis=1) for window in windows]
    per = [window.counts for window in windows]
    return sizes, counts, bounds, np.maximum(per[0][:, None, None] * per[1][:, None] * per[2], 1).astype(np.float64)


def _over_planes(values, work):
    size = max(LEAST_PIECE // max(values[0].size, 1), 1) if len(values) else 1
    parts = pieces(len(values), size)
    return lambda: for_each(lambda i: work(parts[i]), len(parts))


@compiled
def _max_forward(x, out, index, depths, heights, widths, lowest):
    best, place = np.empty(x.shape[3], x.dtype), np.empty(x.shape[3], np.int32)
    run, run_place = np.empty(x.shape[3], x.dtype), np.empty(x.shape[3], np.int32)
    longest = (widths[:, 1] - widths[:, 0]).max()
    for p in range(x.shape[0]):
        for z in range(len(depths)):
            for y in range(len(heights)):
                if _best_of_rows(x[p], depths[z], heights[y], best, place) == 0:
                    out[p, z, y] = lowest
                    index[p, z, y] = -1
                    continue
                if longest <= LONGEST_RUN:
                    _best_of_runs(best, place, longest, run, run_place)
                _best_of_columns(best, place, widths, longest, run, run_place, lowest, out[p, z, y], index[p, z, y])


@compiled
def _best_of_rows(image, depths, heights, best, place):
    """The maximum of each column over the rows of a window, and its place; returns how many rows there were."""
    rows = 0
    for i in range(depths[0], depths[1]):
        for j in range(heights[0], heights[1]):
            row = image[i, j]
            number = np.int32(i * image.shape[1] + j)
            if rows == 0:
                best[:] = row
                place[:] = number
            else:
                for k in range(row.size):  # without a branch: random data would mislead the processor
                    value, top = row[k], best[k]
                    better = (value > top) | (value != value)
                    place[k] = number if better else place[k]
                    best[k] = value if better else top
            rows += 1
    for k in range(place.size):
        place[k] = place[k] * place.size + k
    return rows


@compiled
def _best_of_runs(best, place, length, run, run_place):
    """The maximum of ``length`` columns from each on: for all at once, where one by one a branch would mislead."""
    run[:] = best
    run_place[:] = place
    for step in range(1, length):
        ahead, place_ahead = best[step:], place[step:]
        for k in range(ahead.size):
            value, top = ahead[k], run[k]
            # Of equals the first in reading order, as if row after row had been looked at.
            better = (value > top) | (value != value) | ((value == top) & (place_ahead[k] < run_place[k]))
            run_place[k] = place_ahead[k] if better else run_place[k]
            run[k] = value if better else top


@compiled
def _best_of_columns(best, place, widths, longest, run, run_place, lowest, out, index):
    for c in range(len(widths)):
        start, end = widths[c, 0], widths[c, 1]
        if end - start == longest and longest <= LONGEST_RUN:
            out[c] = run[start]
            index[c] = run_place[start]
            continue
        top, where = lowest, np.int32(-1)
        for k in range(start, end):
            value, at = best[k], place[k]
            if k == start or value > top or value != value or (value == top and at < where):
                top, where = value, at
        out[c] = top
        index[c] = where


@compiled
def _max_backward(dout, index, dx):
    dx[...] = 0
    for p in range(dout.shape[0]):
        for j in range(dout.shape[1]):
            if index[p, j] >= 0:
                dx[p, index[p, j]] += dout[p, j]


@compiled
def _avg_forward(x, out, depths, heights, widths, positions):
    column = np.empty(x.shape[3], x.dtype)
    for p in range(x.shape[0]):
        for z in range(len(depths)):
            for y in range(len(heights)):
                column[:] = 0
                for i in range(depths[z, 0], depths[z, 1]):
                    for j in range(heights[y, 0], heights[y, 1]):
                        row = x[p, i, j]
                        for k in range(row.size):
                            column[k] += row[k]
                for c in range(len(widths)):
                    total = 0.0
                    for k in range(widths[c, 0], widths[c, 1]):
                        total += column[k]
                    out[p, z, y, c] = total / positions[z, y, c]


@compiled
def _avg_backward(dout, dx, depths, heights, widths, positions):
    column = np.empty(dx.shape[3], dx.dtype)
    for p in range(dout.shape[0]):
        dx[p] = 0
        for z in range(len(depths)):
            for y in range(len(heights)):
                column[:] = 0
                for c in range(len(widths)):
                    share = dx.dtype.type(dout[p, z, y, c] / positions[z, y, c])
                    for k in range(widths[c, 0], widths[c, 1]):
                        column[k] += share
                for i in range(depths[z, 0], depths[z, 1]):
                    for j in range(heights[y, 0], heights[y, 1]):
                        row = dx[p, i, j]
                        for k in range(row.size):
                            row[k] += column[k]
