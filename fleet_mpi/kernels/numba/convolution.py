"""Convolution on the host: columns gathered by numba, multiplied by numpy's BLAS, pieces over threads.

A piece is a stretch of output rows of one image, or several small images side by side, so that its
columns stay in the cache and the product is wide enough for BLAS. A convolution by 1 needs no columns:
the image is the matrix. Sums over the batch go image by image in order, within one piece or over
partial sums whose number follows from the shapes: any number of threads gives the same bits.
"""

import itertools

import numpy as np

from fleet_mpi.kernels.numba import depthwise as numba_depthwise
from fleet_mpi.kernels.numba.columns import (
    add_matrix,
    gather,
    gather_by_table,
    join_images,
    part_images,
    scatter,
    scatter_by_table,
)
from fleet_mpi.kernels.reference import convolution
from fleet_mpi.kernels.reference.convolution import geometry, padded_size
from fleet_mpi.kernels.threads import for_each, pieces, scratch

# Columns of one product. Narrower, and BLAS spends its time on packing the weights (49 columns reach
# 60 GFLOP/s where 200 reach 80); wider, and 576 rows of them no longer fit the cache.
FEWEST_COLUMNS = 192
MOST_COLUMNS = 1600
# Numbers in the columns of a product: fewer, and Python takes longer to ask for the work than the work takes.
LEAST_GATHERED = 65536
# Columns that a product of the weights' gradient sums over, if they are gathered anyhow: products have to be added up.
FEWEST_SUMMED = 768
# Rows and columns of a piece of the weights' gradient: below this repeated packing costs more than it spreads.
LEAST_OF_WEIGHTS = 256
MOST_WEIGHT_PIECES = 4
MOST_PARTIAL_SUMS = 8
# Output columns, and positions of a whole plane, below which a table of places is quicker than loops over
# rows: 0.6 ns a number, where rows of 7 take 3 ns and rows of 28 take 0.8.
SHORT_ROW = 24
SHORT_RUN = 128


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
    todo = list(itertools.product(_images(g, FEWEST_COLUMNS, -(-g.batch // 2)), _stretches(g)))

    def piece(i):
        images, stretch = todo[i]
        for group in range(g.groups):
            which = _which(images, group, g.group_out)
            seen = columns.of(_which(images, group, g.group_in), stretch)
            made = _place(result, which, stretch, "product")
            np.matmul(weights[group], seen, out=made)
            _put(made, result, which, stretch)

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
    images, stretches = _images(g, FEWEST_COLUMNS, -(-g.batch // 2)), _stretches(g)

    def piece(i):
        # The stretches of an image overlap in it: one piece adds them, in order.
        result.clear(images[i])
        for group, stretch in itertools.product(range(g.groups), stretches):
            source = _beside(given, _which(images[i], group, g.group_out), stretch, "given")
            which = _which(images[i], group, g.group_in)
            made = result.to_fill(which, stretch)
            np.matmul(weights[group], source, out=made)
            result.put(made, which, stretch)

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
    made_of, read_of = _weight_pieces(g)
    cut = g.groups * len(made_of) * len(read_of) > 1
    images = _images(g, FEWEST_COLUMNS if columns.plain else FEWEST_SUMMED, g.batch if cut else -(-g.batch // 2))
    products = list(itertools.product(images, _stretches(g)))

    def add_up(group, made, read, some, total):
        lines = slice(read.start * columns.taps, read.stop * columns.taps)
        total = total[made, lines]
        for number, (images, stretch) in enumerate(some):
            seen = columns.of((images.start, images.stop, group, read.start, read.stop), stretch)
            source = _beside(given, (images.start, images.stop, group, made.start, made.stop), stretch, "given")
            if number == 0:
                np.matmul(source, seen.T, out=total)
            else:
                share = np.matmul(source, seen.T, out=scratch("share", total.shape, total.dtype))
                add_matrix(share, total)

    if not products:
        return lambda: result.fill(0)
    tiles = list(itertools.product(range(g.groups), made_of, read_of))
    if cut or len(products) == 1:
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
    """The images of one array as matrices of columns, to read or to write.

    ``which`` is what the functions of ``numba_columns`` take: (first image, end, group, first channel, end).
    """

    def __init__(self, g, array):
        self.taps = g.kernel[0] * g.kernel[1] * g.kernel[2]
        self.plain = _plain(g)
        self.array = array.reshape((g.batch, g.groups, g.group_in) + g.size)
        self.flat = array.reshape(g.batch, g.groups, g.group_in, g.size[0] * g.size[1] * g.size[2])
        self._bind_moves(g, array.dtype)

    def _bind_moves(self, g, dtype):
        """Choose how columns are gathered and scattered: by rows, or by a table where rows are short."""
        wide = g.out_size[2]
        if not _rows_are_short(g):
            shape = (g.out_size, g.kernel, g.strides, g.before, g.dilations)
            self._gather = lambda which, columns, stretch: gather(
                self.array, which, columns, stretch.start // wide, _width(stretch) // wide, *shape)
            self._scatter = lambda columns, which, stretch: scatter(
                columns, self.array, which, stretch.start // wide, _width(stretch) // wide, *shape)
            return
        size = padded_size(g)
        table = _offsets(g.out_size, g.strides, size)
        taps = _offsets(g.kernel, g.dilations, size)
        self._gather = lambda which, columns, stretch: gather_by_table(
            self.array, which, scratch("padded", size, dtype), g.before, table[stretch], taps, columns)
        self._scatter = lambda columns, which, stretch: scatter_by_table(
            columns, self.array, which, scratch("padded", size, dtype), g.before, table[stretch], taps)

    def of(self, which, stretch):
        """The columns of some images side by side; a view where that is possible, else scratch memory."""
        if self.plain:
            return _beside(self.flat, which, stretch, "columns")
        columns = self._scratch(which, stretch)
        self._gather(which, columns, stretch)
        return columns

    def clear(self, images):
        """Make the images zero before columns are added to them."""
        if not self.plain:
            self.array[images] = 0

    def to_fill(self, which, stretch):
        """Where a product for these images is to be written before ``put``."""
        return _place(self.flat, which, stretch, "columns") if self.plain else self._scratch(which, stretch)

    def put(self, columns, which, stretch):
        """Bring what was written into ``to_fill`` to the images."""
        if self.plain:
            _put(columns, self.flat, which, stretch)
        else:
            self._scatter(columns, which, stretch)

    def _scratch(self, which, stretch):
        start, stop, _, low, high = which
        return scratch("columns", ((high - low) * self.taps, (stop - start) * _width(stretch)), self.array.dtype)


def _usable(*arrays):
    return all(array.flags.c_contiguous and array.dtype == arrays[0].dtype and array.dtype.char in "fd"
               for array in arrays)


def _plain(g):
    """Whether an image is its own matrix of columns, so that nothing need be moved."""
    return g.kernel == g.strides == (1, 1, 1) and g.out_size == g.size and g.before == (0, 0, 0)


def _rows_are_short(g):
    """Whether a loop for each output row costs more than it moves; whole planes that move as one run are longer."""
    one_run = g.strides[1:] == (1, 1) and g.out_size[2] == g.size[2]
    return g.rows > g.group_in and (
        g.out_size[1] * g.out_size[2] < SHORT_RUN if one_run else g.out_size[2] < SHORT_ROW)


def _offsets(extents, steps, size):
    """Where the positions of a grid with these steps lie in a flat array of three dimensions."""
    z, y, x = (np.arange(extent) * step for extent, step in zip(extents, steps))
    return ((z[:, None, None] * size[1] + y[:, None]) * size[2] + x).reshape(-1)


def _images(g, fewest, most):
    """The batch cut into slices: single images, or as many as have ``fewest`` columns, but not more than ``most``."""
    fewest = max(fewest, LEAST_GATHERED // g.rows)
    return pieces(g.batch, max(min(-(-fewest // g.area), most), 1))


def _stretches(g):
    """The output positions of an image cut into slices of whole rows."""
    rows, wide = g.out_size[0] * g.out_size[1], g.out_size[2]
    if _plain(g):
        return [slice(0, g.area)]
    count = -(-g.area // MOST_COLUMNS)
    size = max(-(-rows // count), 1)
    return [slice(part.start * wide, part.stop * wide) for part in pieces(rows, size)]


def _weight_pieces(g):
    """Slices of the channels made and of the channels read that cut the weights' gradient in pieces."""
    def cut(channels, weights):
        count = min(max(weights // LEAST_OF_WEIGHTS, 1), MOST_WEIGHT_PIECES, channels)
        return pieces(channels, -(-channels // count))

    # Channels read are cut where columns are gathered: each piece gathers its own.
    if _plain(g) and g.group_out > g.group_in:
        return cut(g.group_out, g.group_out), [slice(0, g.group_in)]
    return [slice(0, g.group_out)], cut(g.group_in, g.rows)


def _which(images, group, channels):
    return images.start, images.stop, group, 0, channels


def _width(stretch):
    return stretch.stop - stretch.start


def _place(flat, which, stretch, slot):
    """A matrix for the stretches of some images side by side: a view where it is one image, else scratch memory."""
    start, stop, group, low, high = which
    if stop - start == 1:
        return flat[start, group, low:high, stretch]
    return scratch(slot, (high - low, (stop - start) * _width(stretch)), flat.dtype)


def _beside(flat, which, stretch, slot):
    """The stretches of some images side by side as one matrix."""
    joined = _place(flat, which, stretch, slot)
    if which[1] - which[0] > 1:
        join_images(flat, which, joined, stretch.start, _width(stretch))
    return joined


def _put(joined, flat, which, stretch):
    """Bring what was written into ``_place`` to the images."""
    if which[1] - which[0] > 1:
        part_images(joined, flat, which, stretch.start, _width(stretch))
