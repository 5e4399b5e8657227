"""Maximum and average pooling over two or three spatial dimensions, forward and backward.

What is pooled is said by one ``Windows`` per dimension: where each window starts and ends, and how
many positions an average divides by. Sliding, global and adaptive pooling differ in nothing else.
Each kernel is bound once to its arrays ([batch, channel, (depth,) height, width]) and gives back a
function without arguments that computes. Data may be float16: they are computed with in float32.
"""

import itertools
from typing import NamedTuple

import numpy as np

from fleet_mpi.arrays import module_of, to_module
from fleet_mpi.errors import ProgramError
from fleet_mpi.kernels import kernel
from fleet_mpi.kernels.reference.convolution import padding_pairs, per_dimension
from fleet_mpi.kernels.widening import wide, wide_type


class Windows(NamedTuple):
    """The windows along one dimension, as int64 arrays on the host: cut at the borders of the data."""

    size: int  # of the data
    starts: np.ndarray
    ends: np.ndarray
    counts: np.ndarray


def out_extent(size, kernel_size, stride, padding, ceil_mode):
    """The number of windows along one dimension; ``padding`` is the (before, after) pair."""
    room = size - kernel_size + sum(padding)
    return (room + (stride - 1 if ceil_mode else 0)) // stride + 1


def sliding_windows(sizes, kernel_sizes, strides, paddings, ceil_mode=False, exclusive=True):
    """Windows of a fixed size at a fixed stride. ``exclusive``: an average leaves the padding out of its count."""
    rank = len(sizes)
    kernel_sizes, strides = per_dimension(kernel_sizes, rank), per_dimension(strides, rank)
    made = []
    for size, extent, stride, padding in zip(sizes, kernel_sizes, strides, padding_pairs(paddings, rank)):
        count = out_extent(size, extent, stride, padding, ceil_mode)
        if count < 1:
            raise ProgramError(f"pooling {tuple(sizes)} with windows {kernel_sizes}, strides {strides}, paddings "
                               f"{paddings!r}: expected windows that fit in, got {count} along the extent {size}")
        raw = np.arange(count) * stride - padding[0]
        starts = np.clip(raw, 0, size)
        ends = np.clip(raw + extent, starts, size)
        made.append(Windows(size, starts, ends, ends - starts if exclusive else np.full(count, extent)))
    return tuple(made)


def adaptive_windows(sizes, out_sizes):
    """As many windows as asked for, which cover the data evenly; neighbours may share a position."""
    made = []
    for size, count in zip(sizes, per_dimension(out_sizes, len(sizes))):
        starts = np.arange(count) * size // count
        ends = -(-(np.arange(count) + 1) * size // count)
        made.append(Windows(size, starts, ends, ends - starts))
    return tuple(made)


def global_windows(sizes):
    """One window over everything."""
    return adaptive_windows(sizes, 1)


def three(windows):
    """The windows of three dimensions; in front of two stands a depth of 1."""
    return adaptive_windows((1,) * (3 - len(windows)), 1) + tuple(windows)


def check_shapes(x, out, windows):
    """Refuse arrays that these windows do not fit."""
    data = tuple(x.shape[:2]) + tuple(window.size for window in windows)
    pooled = tuple(x.shape[:2]) + tuple(len(window.starts) for window in windows)
    if tuple(x.shape) != data or tuple(out.shape) != pooled:
        raise ProgramError(f"pooling: expected data {data} and an output {pooled}, "
                           f"got {tuple(x.shape)} and {tuple(out.shape)}")


@kernel
def max_pool_forward(x, out, index, windows):
    """Bind the maximum of each window and, in ``index`` (int32), its place in the image; -1 in an empty window."""
    check_shapes(x, out, windows)
    windows = three(windows)
    xp = module_of(x)

    def run():
        data = wide(x)
        best, place = _per_window(windows, data, xp.full, _lowest(data.dtype)), _per_window(windows, index, xp.full, -1)
        for at, inside, flat in _positions(windows, xp):
            values = _taken(data, windows, at, xp)
            better = inside & ((place < 0) | (values > best) | (values != values))
            best = xp.where(better, values, best)
            place = xp.where(better, flat.astype(index.dtype), place)
        out[...] = best.reshape(out.shape)
        index[...] = place.reshape(index.shape)
    return run


@kernel
def max_pool_backward(dout, index, dx, windows):
    """Bind the data's gradient: each window's goes to the place its maximum had.

    ``index`` says where that is; a version that gathers also asks which of the ``windows`` may reach a place.
    """
    xp = module_of(dout)
    planes = dout.shape[0] * dout.shape[1]

    def run():
        place = index.reshape(planes, -1).astype(np.int64)
        made, values = xp.zeros((planes, dx.size // planes), wide_type(dx.dtype)), wide(dout).reshape(planes, -1)
        given = xp.where(place >= 0, values, xp.zeros_like(values))
        xp.add.at(made, (xp.arange(planes)[:, None], xp.maximum(place, 0)), given)
        dx[...] = made.reshape(dx.shape)
    return run


@kernel
def avg_pool_forward(x, out, windows):
    """Bind the average of each window."""
    check_shapes(x, out, windows)
    windows = three(windows)
    xp = module_of(x)

    def run():
        data = wide(x)
        total = _per_window(windows, data, xp.full, 0)
        for at, inside, _ in _positions(windows, xp):
            values = _taken(data, windows, at, xp)
            total = total + xp.where(inside, values, xp.zeros_like(values))
        out[...] = (total * shares(windows, data.dtype, xp)).reshape(out.shape)
    return run


@kernel
def avg_pool_backward(dout, dx, windows):
    """Bind the data's gradient: each window's is shared evenly by its positions."""
    check_shapes(dx, dout, windows)
    windows = three(windows)
    xp = module_of(dout)
    planes = dout.shape[0] * dout.shape[1]

    def run():
        given = wide(dout).reshape((planes,) + _counts(windows))
        share = given * shares(windows, given.dtype, xp)
        made = xp.zeros((planes, dx.size // planes), given.dtype)
        for _, inside, flat in _positions(windows, xp):
            part = xp.where(inside, share, xp.zeros_like(share))
            xp.add.at(made, (xp.arange(planes)[:, None], flat.reshape(1, -1)), part.reshape(planes, -1))
        dx[...] = made.reshape(dx.shape)
    return run


def _counts(windows):
    return tuple(len(window.starts) for window in windows)


def _lowest(dtype):
    return float(np.finfo(dtype).min)


def _per_window(windows, like, full, value):
    return full(tuple(like.shape[:2]) + _counts(windows), value, dtype=like.dtype)


def _positions(windows, xp):
    """For each offset into a window: the position per dimension, whether it is inside, and its place in the image."""
    longest = [int((window.ends - window.starts).max()) for window in windows]
    _, height, width = (window.size for window in windows)
    for offsets in itertools.product(*map(range, longest)):
        at = [np.minimum(window.starts + offset, window.size - 1) for window, offset in zip(windows, offsets)]
        inside = [window.starts + offset < window.ends for window, offset in zip(windows, offsets)]
        flat = (at[0][:, None, None] * height + at[1][:, None]) * width + at[2]
        within = inside[0][:, None, None] & inside[1][:, None] & inside[2]
        yield [to_module(places, xp) for places in at], to_module(within, xp), to_module(flat, xp)


def _taken(x, windows, at, xp):
    values = x.reshape(tuple(x.shape[:2]) + tuple(window.size for window in windows))
    for axis, places in enumerate(at, start=2):
        values = xp.take(values, places, axis=axis)
    return values


def shares(windows, dtype, xp):
    """What each window's sum is multiplied by to be its average."""
    counts = [window.counts for window in windows]
    positions = counts[0][:, None, None] * counts[1][:, None] * counts[2]
    return to_module((1 / np.maximum(positions, 1)).astype(dtype), xp)
