"""Convolution for cupy's arrays: columns of the data by one kernel, then one product by cuBLAS.

A matrix of columns has a row for each (channel, weight position) and a column for each (image, output position): what
that position of the weight meets there. 1x1 convolutions that keep the size need none. Gradients of the data are
gathered: every place adds up its contributions in the order of the weight's positions, so the bits do not depend on
the order of threads. Large batches are worked through in parts that fit into the workspace.
"""

import math

import numpy as np

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels.cuda.compiling import FLOATS, THREADS, fits, function
from fleet_mpi.kernels.cuda.gemm import Matrices, product
from fleet_mpi.kernels.cuda.workspace import MOST_BYTES, workspace
from fleet_mpi.kernels.reference import convolution
from fleet_mpi.kernels.reference.convolution import geometry
from fleet_mpi.kernels.widening import wide_type

# A block works on one row of the columns, or on one channel of the images; ``shares`` blocks divide it.
SOURCE = r"""
struct Geometry { int channels, size[3], out[3], kernel[3], stride[3], before[3], dilation[3]; };

#define FOR_MY_SHARE(j, width, shares) \
    for (unsigned j = blockIdx.x % (shares) * blockDim.x + threadIdx.x; j < (width); j += (shares) * blockDim.x)

extern "C" __global__ void columns_of(const stored *x, stored *columns, Geometry g, unsigned first, unsigned images,
                                      unsigned shares)
{
    const unsigned row = blockIdx.x / shares, across = g.out[1] * g.out[2], width = images * g.out[0] * across;
    const int w0 = row % g.kernel[2] * g.dilation[2] - g.before[2];
    const int h0 = row / g.kernel[2] % g.kernel[1] * g.dilation[1] - g.before[1];
    const int d0 = row / (g.kernel[2] * g.kernel[1]) % g.kernel[0] * g.dilation[0] - g.before[0];
    const unsigned channel = row / (g.kernel[2] * g.kernel[1] * g.kernel[0]);
    stored *line = columns + (long long)row * width;
    FOR_MY_SHARE(j, width, shares) {
        const int w = j % g.out[2] * g.stride[2] + w0, h = j / g.out[2] % g.out[1] * g.stride[1] + h0;
        const int d = j / across % g.out[0] * g.stride[0] + d0;
        const unsigned image = first + j / (across * g.out[0]);
        const bool inside = w >= 0 && w < g.size[2] && h >= 0 && h < g.size[1] && d >= 0 && d < g.size[0];
        line[j] = inside ? x[((((long long)image * g.channels + channel) * g.size[0] + d) * g.size[1] + h) * g.size[2]
                             + w] : stored(0);
    }
}

// Which output position a weight position brings to this place of the data, or -1.
__device__ inline int brought(int place, int tap, int stride, int before, int dilation, int out)
{
    const int distance = place + before - tap * dilation;
    return distance >= 0 && distance % stride == 0 && distance / stride < out ? distance / stride : -1;
}

extern "C" __global__ void images_of(const stored *columns, stored *x, Geometry g, unsigned first, unsigned images,
                                     unsigned shares)
{
    const unsigned channel = blockIdx.x / shares, plane = g.size[1] * g.size[2], volume = g.size[0] * plane;
    const long long area = (long long)g.out[0] * g.out[1] * g.out[2];
    FOR_MY_SHARE(j, images * volume, shares) {
        const int w = j % g.size[2], h = j / g.size[2] % g.size[1], d = j / plane % g.size[0];
        const unsigned image = j / volume;
        long long row = (long long)channel * g.kernel[0] * g.kernel[1] * g.kernel[2];
        real total = 0;
        for (int kd = 0; kd < g.kernel[0]; kd++) {
            const int od = brought(d, kd, g.stride[0], g.before[0], g.dilation[0], g.out[0]);
            for (int kh = 0; kh < g.kernel[1]; kh++) {
                const int oh = brought(h, kh, g.stride[1], g.before[1], g.dilation[1], g.out[1]);
                for (int kw = 0; kw < g.kernel[2]; kw++, row++) {
                    const int ow = brought(w, kw, g.stride[2], g.before[2], g.dilation[2], g.out[2]);
                    if (od >= 0 && oh >= 0 && ow >= 0)
                        total += widen(columns[(row * images + image) * area + (od * g.out[1] + oh) * g.out[2] + ow]);
                }
            }
        }
        x[((long long)(first + image) * g.channels + channel) * volume + j % volume] = narrow(total);
    }
}
"""
MOST_SHARES = 64  # blocks of one row: rows are many
GEOMETRY = np.dtype((np.void, 19 * 4))


def conv_forward(x, w, out, strides, paddings, dilations, groups):
    """Bind one kernel and one product for each part of the batch."""
    if not _usable(x, w, out):
        return convolution.conv_forward.reference(x, w, out, strides, paddings, dilations, groups)
    work = Work(geometry(x, w, out, strides, paddings, dilations, groups), x)
    if work.is_direct:
        multiply = work.product(work.g.batch, work.weights, work.data, work.output)
        return lambda: multiply(w.data.ptr, x.data.ptr, out.data.ptr)
    fill = work.mover("columns_of", work.of_data)
    parts = [(first, images, work.product(images, work.weights, work.columns(images), work.output))
             for first, images in work.parts]

    def run(columns):
        for first, images, multiply in parts:
            fill(x, columns, first, images)
            multiply(w.data.ptr, columns, out.data.ptr + first * work.output_bytes)
    return work.with_workspace(run, work.columns_bytes)


def conv_backward_data(dout, w, dx, strides, paddings, dilations, groups):
    """Bind one product and one kernel for each part of the batch."""
    if not _usable(dout, w, dx):
        return convolution.conv_backward_data.reference(dout, w, dx, strides, paddings, dilations, groups)
    work = Work(geometry(dx, w, dout, strides, paddings, dilations, groups), dx)
    if work.is_direct:
        multiply = work.product(work.g.batch, work.turned_weights, work.output, work.data)
        return lambda: multiply(w.data.ptr, dout.data.ptr, dx.data.ptr)
    gather = work.mover("images_of", work.of_data)
    parts = [(first, images, work.product(images, work.turned_weights, work.output, work.columns(images)))
             for first, images in work.parts]

    def run(columns):
        for first, images, multiply in parts:
            multiply(w.data.ptr, dout.data.ptr + first * work.output_bytes, columns)
            gather(columns, dx, first, images)
    return work.with_workspace(run, work.columns_bytes)


def conv_backward_weight(x, dout, dw, strides, paddings, dilations, groups):
    """Bind one product that sums over the images too; so their gradients are laid out as columns first."""
    if not _usable(x, dout) or not fits(dw, dtypes=(x.dtype.name, wide_type(x.dtype).name)):
        return convolution.conv_backward_weight.reference(x, dout, dw, strides, paddings, dilations, groups)
    work = Work(geometry(x, dw, dout, strides, paddings, dilations, groups), x)
    fill, fill_given = work.mover("columns_of", work.of_data), work.mover("columns_of", work.of_output)
    parts = [(first, images, work.sum_product(images, dw.dtype, add=first > 0)) for first, images in work.parts]

    def run(columns):
        given = columns + work.parts[0][1] * work.columns_bytes
        for first, images, multiply in parts:
            fill(x, columns, first, images)
            fill_given(dout, given, first, images)
            multiply(given, columns, dw.data.ptr)
    return work.with_workspace(run, work.columns_bytes + work.output_bytes)


def _usable(*arrays):
    return fits(*arrays, dtypes=FLOATS) and all(array.size for array in arrays)


class Work:
    """The geometry of a convolution of arrays ``like`` one: how its matrices lie, and the calls it is made of."""

    def __init__(self, g, like):
        self.g, self.like, self.xp = g, like, module_of(like)
        channels, made, item = g.groups * g.group_in, g.groups * g.group_out, like.dtype.itemsize
        self.is_direct = (g.kernel == g.strides == (1, 1, 1) and g.before == (0, 0, 0) and g.size == g.out_size)
        self.columns_bytes, self.output_bytes = g.groups * g.rows * g.area * item, made * g.area * item
        self.of_data = (channels, *g.size, *g.out_size, *g.kernel, *g.strides, *g.before, *g.dilations)
        self.of_output = (made, *g.out_size, *g.out_size, *(1,) * 6, *(0,) * 3, *(1,) * 3)
        self.data = Matrices(g.group_in, g.area, g.area, channels * g.area, g.group_in * g.area)
        self.output = Matrices(g.group_out, g.area, g.area, made * g.area, g.group_out * g.area)
        self.weights = Matrices(g.group_out, g.rows, g.rows, 0, g.group_out * g.rows)
        self.turned_weights = Matrices(g.rows, g.group_out, g.rows, 0, g.group_out * g.rows, by_columns=True)
        most = max(1, MOST_BYTES // (self.columns_bytes + self.output_bytes))
        self.parts = [(first, min(most, g.batch - first)) for first in range(0, g.batch, most)]

    def columns(self, images):
        """How the columns of so many images lie."""
        g = self.g
        return Matrices(g.rows, g.area, images * g.area, g.area, g.rows * images * g.area)

    def product(self, images, left, right, out):
        """A product for every image and group."""
        return product(self.xp, self.like.dtype, images, self.g.groups, left, right, out)

    def sum_product(self, images, made, add):
        """The weights' gradient, of type ``made``: columns of the output's times those of the data."""
        g, width = self.g, images * self.g.area
        given = Matrices(g.group_out, width, width, 0, g.group_out * width)
        seen = Matrices(width, g.rows, width, 0, g.rows * width, by_columns=True)
        return product(self.xp, self.like.dtype, 1, g.groups, given, seen, self.weights, add, made)

    def mover(self, name, numbers):
        """A kernel of the source as a function of source, target, first image and number of images."""
        run, constants = function(SOURCE, name, self.like), np.frombuffer(np.int32(numbers).tobytes(), GEOMETRY)
        channels, size, out, kernel = numbers[0], numbers[1:4], numbers[4:7], numbers[7:10]
        lines, length = ((channels * math.prod(kernel), math.prod(out)) if name == "columns_of"
                         else (channels, math.prod(size)))

        def move(source, target, first, images):
            shares = min(MOST_SHARES, -(-images * length // THREADS))
            run((lines * shares,), (THREADS,), (_pointer(source), _pointer(target), constants, np.uint32(first),
                                                np.uint32(images), np.uint32(shares)))
        return move

    def with_workspace(self, run, bytes_per_image):
        """``run`` without its argument, the address of a workspace; which is allocated now if it is too small."""
        xp, size_bytes = self.xp, bytes_per_image * self.parts[0][1]
        workspace(xp, size_bytes)
        return lambda: run(workspace(xp, size_bytes))


def _pointer(place):
    """An array, or an address as a kernel takes it."""
    return np.uint64(place) if isinstance(place, int) else place
