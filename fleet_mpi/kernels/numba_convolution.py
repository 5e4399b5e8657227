"""Convolution on the host: columns gathered by numba, multiplied by numpy's BLAS, pieces over threads.

A piece is a stretch of output rows of one image, or several small images side by side, so that its
columns stay in the cache and the product is wide enough for BLAS. A convolution by 1 needs no columns:
the image is the matrix. Sums over the batch go image by image in order, within one piece or over
partial sums whose number follows from the shapes: any number of threads gives the same bits.
"""

import itertools

import numpy as np

from fleet_mpi.kernels import convolution, numba_depthwise
from fleet_mpi.kernels.convolution import geometry
from fleet_mpi.kernels.numba_columns import add_matrix, copy_matrix, gather, scatter
from fleet_mpi.kernels.threads import for_each, pieces, scratch

# Columns of one product. Narrower, and BLAS spends its time on packing the weights (49 columns reach
# 60 GFLOP/s where 200 reach 80); wider, and 576 rows of them no longer fit the cache.
FEWEST_COLUMNS = 192
MOST_COLUMNS = 1024
# Rows and columns of a piece of the weights' gradient: below this repeated packing costs more than it spreads.
LEAST_OF_WEIGHTS = 256
MOST_WEIGHT_PIECES = 4
MOST_PARTIAL_SUMS = 8


def conv_forward(x, w, out, strides, paddings, dilations, groups):
    """Bind ``out = x * w`` over host arrays; those that are not contiguous go to the reference."""
    if not _usable(x, w, out):
        return convolution.conv_forward.reference(x, w, out, strides, paddings, dilations, groups)
    g = geometry(x, w, out, strides, paddings, dilations, groups)
    if numba_depthwise.fits(g):
        return numba_depthwise.bind_forward(g, x, w, out)
    columns = _Columns(g, x)
    weights = w.reshape(g.groups, g.group_out, g.rows)
    result = out.reshape(g.batch, g.groups, g.group_out, g.area)
    todo = list(itertools.product(_images(g), _stretches(g)))

    def piece(i):
        images, stretch = todo[i]
        for group in range(g.groups):
            seen = columns.of(images, group, stretch)
            with_one = images.stop - images.start == 1
            made = (result[images.start, group, :, stretch] if with_one
                    else scratch("product", (g.group_out, seen.shape[1]), out.dtype))
            np.matmul(weights[group], seen, out=made)
            if not with_one:
                _part(made, result[images, group], copy_matrix)

    return lambda: for_each(piece, len(todo))


def conv_backward_data(dout, w, dx, strides, paddings, dilations, groups):
    """Bind ``dx`` from ``dout`` over host arrays; those that are not contiguous go to the reference."""
    if not _usable(dout, w, dx):
        return convolution.conv_backward_data.reference(dout, w, dx, strides, paddings, dilations, groups)
    g = geometry(dx, w, dout, strides, paddings, dilations, groups)
    if numba_depthwise.fits(g):
        return numba_depthwise.bind_backward_data(g, dout, w, dx)
    given = dout.reshape(g.batch, g.groups, g.group_out, g.area)
    weights = w.reshape(g.groups, g.group_out, g.rows).transpose(0, 2, 1)
    result = _Columns(g, dx)
    images, stretches = _images(g), _stretches(g)

    def piece(i):
        # The stretches of an image overlap in it: one piece adds them, in order.
        result.clear(images[i])
        for group, stretch in itertools.product(range(g.groups), stretches):
            source = _beside(given, images[i], group, stretch, "given")
            made = result.to_fill(images[i], group, stretch, source.shape[1])
            np.matmul(weights[group], source, out=made)
            result.put(made, images[i], group, stretch)

    return lambda: for_each(piece, len(images))


def conv_backward_weight(x, dout, dw, strides, paddings, dilations, groups):
    """Bind ``dw`` over host arrays; those that are not contiguous go to the reference."""
    if not _usable(x, dout, dw):
        return convolution.conv_backward_weight.reference(x, dout, dw, strides, paddings, dilations, groups)
    g = geometry(x, dw, dout, strides, paddings, dilations, groups)
    if numba_depthwise.fits(g):
        return numba_depthwise.bind_backward_weight(g, x, dout, dw)
    columns = _Columns(g, x)
    given = dout.reshape(g.batch, g.groups, g.group_out, g.area)
    result = dw.reshape(g.groups, g.group_out, g.rows)
    products = list(itertools.product(_images(g), _stretches(g)))
    made_of, read_of = _weight_pieces(g)

    def add_up(group, made, read, some, total):
        lines = slice(read.start * columns.taps, read.stop * columns.taps)
        total = total[made, lines]
        for number, (images, stretch) in enumerate(some):
            seen = columns.of(images, group, stretch, read)
            source = _beside(given, images, group, stretch, "given")[made]
            if number == 0:
                np.matmul(source, seen.T, out=total)
            else:
                share = np.matmul(source, seen.T, out=scratch("share", total.shape, total.dtype))
                add_matrix(share, total)

    tiles = list(itertools.product(range(g.groups), made_of, read_of))
    if len(tiles) > 1 or len(products) == 1:
        def tile(i):
            group, made, read = tiles[i]
            add_up(group, made, read, products, result[group])
        return lambda: for_each(tile, len(tiles))
    return _in_partial_sums(g, products, add_up, result[0])


def _in_partial_sums(g, products, add_up, total):
    """Weights too few to be cut: each piece sums some images, and the sums are added in order."""
    size = -(-len(products) // MOST_PARTIAL_SUMS)
    shares = pieces(len(products), size)
    all_made, all_read = slice(0, g.group_out), slice(0, g.group_in)

    def run():
        sums = scratch("sums", (len(shares),) + total.shape, total.dtype)
        for_each(lambda i: add_up(0, all_made, all_read, products[shares[i]], sums[i]), len(shares))
        total[...] = sums[0]
        for i in range(1, len(shares)):
            add_matrix(sums[i], total)
    return run


class _Columns:
    """The images of one array as matrices of columns, to read or to write."""

    def __init__(self, g, array):
        self.taps = g.kernel[0] * g.kernel[1] * g.kernel[2]
        # Nothing is moved: an image is its own matrix of columns.
        self.plain = self.taps == 1 and g.strides == (1, 1, 1) and g.out_size == g.size
        self.wide = g.out_size[2]
        self.array = array.reshape((g.batch, g.groups, g.group_in) + g.size)
        self.flat = array.reshape(g.batch, g.groups, g.group_in, -1)
        self.shape = (g.out_size, g.kernel, g.strides, g.before, g.dilations)

    def of(self, images, group, stretch, channels=slice(None)):
        """The columns of some images side by side; a view where that is possible, else scratch memory."""
        if self.plain:
            return _beside(self.flat, images, group, stretch, "columns", channels)
        width = stretch.stop - stretch.start
        array = self.array[images, group, channels]
        columns = scratch("columns", (array.shape[1] * self.taps, width * len(array)), array.dtype)
        for number, image in enumerate(array):
            gather(image, columns, number * width, stretch.start // self.wide, width // self.wide, *self.shape)
        return columns

    def clear(self, images):
        """Make the images zero before columns are added to them."""
        if not self.plain:
            self.array[images] = 0

    def to_fill(self, images, group, stretch, width):
        """Where a product for these images is to be written before ``put``."""
        if self.plain and images.stop - images.start == 1:
            return self.flat[images.start, group, :, stretch]
        return scratch("columns", (self.flat.shape[2] * self.taps, width), self.flat.dtype)

    def put(self, columns, images, group, stretch):
        """Bring what was written into ``to_fill`` to the images."""
        width = stretch.stop - stretch.start
        if not self.plain:
            for number, image in enumerate(self.array[images, group]):
                scatter(columns, number * width, image, stretch.start // self.wide, width // self.wide, *self.shape)
        elif images.stop - images.start > 1:
            _part(columns, self.flat[images, group], copy_matrix)


def _usable(*arrays):
    return all(array.flags.c_contiguous and array.dtype == arrays[0].dtype and array.dtype.char in "fd"
               for array in arrays)


def _images(g):
    """The batch cut into slices: single images, or several small ones, of which half a batch at most."""
    together = min(-(-FEWEST_COLUMNS // g.area), -(-g.batch // 2))
    return pieces(g.batch, max(together, 1))


def _stretches(g):
    """The output positions of an image cut into slices of whole rows."""
    rows, wide = g.out_size[0] * g.out_size[1], g.out_size[2]
    if g.rows == g.group_in and g.strides == (1, 1, 1):
        return [slice(0, g.area)]
    count = -(-g.area // MOST_COLUMNS)
    size = max(-(-rows // count), 1)
    return [slice(part.start * wide, part.stop * wide) for part in pieces(rows, size)]


def _weight_pieces(g):
    """Slices of the channels made and of the channels read that cut the weights' gradient in pieces."""
    def cut(channels, weights):
        count = min(max(weights // LEAST_OF_WEIGHTS, 1), MOST_WEIGHT_PIECES, channels)
        return pieces(channels, -(-channels // count))

    taps = g.rows // g.group_in
    if taps == 1 and g.group_out > g.group_in:
        return cut(g.group_out, g.group_out), [slice(0, g.group_in)]
    return [slice(0, g.group_out)], cut(g.group_in, g.rows)


def _beside(flat, images, group, stretch, slot, channels=slice(None)):
    """Stretches of several images side by side as one matrix; a view where it is one image."""
    if images.stop - images.start == 1:
        return flat[images.start, group, channels, stretch]
    parts = flat[images, group, channels, stretch]
    width = parts.shape[2]
    joined = scratch(slot, (parts.shape[1], width * len(parts)), flat.dtype)
    for number, part in enumerate(parts):
        copy_matrix(part, joined[:, number * width:(number + 1) * width])
    return joined


def _part(joined, images, move):
    """Bring a matrix of images side by side to the images."""
    width = images.shape[2]
    for number, image in enumerate(images):
        move(joined[:, number * width:(number + 1) * width], image)
