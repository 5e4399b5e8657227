"""Convolution over two or three spatial dimensions: forward, and the gradients of data and weights.

Each kernel is bound once to its arrays and gives back a function without arguments that computes.
Arrays are [batch, channel, (depth,) height, width]; weights [channel out, channel in / groups, ...].
These references walk over the positions of the weight and multiply slices; what the host runs is in
``numba_convolution``.
"""

import itertools
from typing import NamedTuple

from fleet_mpi.arrays import module_of
from fleet_mpi.errors import ProgramError
from fleet_mpi.kernels import kernel


class Geometry(NamedTuple):
    """All extents of a convolution, with three spatial dimensions (two: the depth is 1)."""

    batch: int
    groups: int
    group_in: int  # channels a group reads
    group_out: int  # channels a group makes
    size: tuple
    out_size: tuple
    kernel: tuple
    strides: tuple
    before: tuple  # padding at the low end; that at the high end shows in out_size
    dilations: tuple

    @property
    def rows(self):
        """Weights per output channel: how many rows the matrix of columns has."""
        return self.group_in * self.kernel[0] * self.kernel[1] * self.kernel[2]

    @property
    def area(self):
        """Output positions of one image and channel."""
        return self.out_size[0] * self.out_size[1] * self.out_size[2]


def out_extent(size, kernel_size, stride, padding, dilation):
    """The length of the output along one dimension; ``padding`` is the (before, after) pair."""
    return (size + sum(padding) - dilation * (kernel_size - 1) - 1) // stride + 1


def per_dimension(value, rank):
    """A stride or dilation as a tuple with one int for each of ``rank`` dimensions."""
    return (value,) * rank if isinstance(value, int) else tuple(value)


def padding_pairs(paddings, rank):
    """Paddings as (before, after) pairs: from an int, ints, pairs, or a flat list of both ends."""
    if isinstance(paddings, int):
        return ((paddings, paddings),) * rank
    paddings = tuple(paddings)
    if paddings and not isinstance(paddings[0], int):
        return tuple((int(before), int(after)) for before, after in paddings)
    if len(paddings) == 2 * rank:
        return tuple(zip(paddings[::2], paddings[1::2]))
    return tuple((both, both) for both in paddings)


def geometry(x, w, out, strides, paddings, dilations, groups):
    """The Geometry of a convolution of ``x`` by ``w`` into ``out``; arrays of other shapes are refused."""
    rank = len(w.shape) - 2
    strides, dilations = per_dimension(strides, rank), per_dimension(dilations, rank)
    pairs = padding_pairs(paddings, rank)
    expected = (x.shape[0], w.shape[0]) + tuple(map(
        out_extent, x.shape[2:], w.shape[2:], strides, pairs, dilations))
    if tuple(out.shape) != expected or x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise ProgramError(
            f"convolution of {tuple(x.shape)} by weights {tuple(w.shape)} with strides {strides}, paddings {pairs}, "
            f"dilations {dilations}, groups {groups}: expected an output {expected}, {w.shape[1] * groups} channels "
            f"in and a multiple of {groups} channels out, got an output {tuple(out.shape)}")

    def three(values, filler):
        return (filler,) * (3 - rank) + tuple(values)

    return Geometry(x.shape[0], groups, w.shape[1], w.shape[0] // groups, three(x.shape[2:], 1),
                    three(out.shape[2:], 1), three(w.shape[2:], 1), three(strides, 1),
                    three((before for before, _ in pairs), 0), three(dilations, 1))


@kernel
def conv_forward(x, w, out, strides, paddings, dilations, groups):
    """Bind ``out = x * w``; returns the function that computes it."""
    g = geometry(x, w, out, strides, paddings, dilations, groups)
    xp = module_of(x)

    def run():
        weights = w.reshape((g.groups, g.group_out, g.group_in) + g.kernel)
        padded = _padded(x, g)
        total = xp.zeros((g.batch, g.groups, g.group_out, g.area), out.dtype)
        for at, window in _windows(g):
            seen = padded[window].reshape(g.batch, g.groups, g.group_in, g.area)
            total += xp.matmul(weights[at], seen)
        out[...] = total.reshape(out.shape)
    return run


@kernel
def conv_backward_data(dout, w, dx, strides, paddings, dilations, groups):
    """Bind ``dx``, the gradient of the data, from that of the output; returns the function that computes it."""
    g = geometry(dx, w, dout, strides, paddings, dilations, groups)
    xp = module_of(dout)

    def run():
        weights = w.reshape((g.groups, g.group_out, g.group_in) + g.kernel)
        given = dout.reshape(g.batch, g.groups, g.group_out, g.area)
        padded = xp.zeros((g.batch, g.groups, g.group_in, *padded_size(g)), dx.dtype)
        for at, window in _windows(g):
            share = xp.matmul(xp.swapaxes(weights[at], 1, 2), given)
            padded[window] += share.reshape((g.batch, g.groups, g.group_in) + g.out_size)
        dx[...] = _inner(padded, g).reshape(dx.shape)
    return run


@kernel
def conv_backward_weight(x, dout, dw, strides, paddings, dilations, groups):
    """Bind ``dw``, the gradient of the weights, summed over the batch; returns the function that computes it.

    It may be float32 where the data are float16.
    """
    g = geometry(x, dw, dout, strides, paddings, dilations, groups)
    xp = module_of(x)

    def run():
        given = dout.reshape(g.batch, g.groups, g.group_out, g.area)
        padded = _padded(x, g)
        total = xp.empty((g.groups, g.group_out, g.group_in) + g.kernel, dw.dtype)
        for at, window in _windows(g):
            seen = padded[window].reshape(g.batch, g.groups, g.group_in, g.area)
            total[at] = xp.matmul(given, xp.swapaxes(seen, 2, 3)).sum(axis=0)
        dw[...] = total.reshape(dw.shape)
    return run


def _padded(x, g):
    padded = module_of(x).zeros((g.batch, g.groups, g.group_in, *padded_size(g)), x.dtype)
    _inner(padded, g)[...] = x.reshape((g.batch, g.groups, g.group_in) + g.size)
    return padded


def padded_size(g):
    """The extents of an image with its padding: to where the last window reaches, and not short of the data."""
    return tuple(max((out - 1) * stride + dilation * (kernel_size - 1) + 1, before + size)
                 for out, stride, dilation, kernel_size, before, size
                 in zip(g.out_size, g.strides, g.dilations, g.kernel, g.before, g.size))


def _inner(padded, g):
    return padded[(slice(None),) * 3 + tuple(
        slice(before, before + size) for before, size in zip(g.before, g.size))]


def _windows(g):
    """For each position in the weight: its index, and the slice of the padded data that it meets."""
    for position in itertools.product(*map(range, g.kernel)):
        cut = tuple(slice(p * dilation, p * dilation + (out - 1) * stride + 1, stride)
                    for p, dilation, out, stride in zip(position, g.dilations, g.out_size, g.strides))
        yield (slice(None),) * 3 + position, (slice(None),) * 3 + cut
