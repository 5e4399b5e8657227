"""Columns of a convolution: what each position of the weight meets, laid out as a matrix for BLAS.

Row (channel, weight position), column (output row, output column). ``gather`` fills such a matrix
from an image, ``scatter`` adds one back. A stretch of output rows is done at a time, so that the
matrix stays in the cache. Rows of an image lie one after the other in memory; where the output is as
wide as the image, many rows are moved as one long run, shifted, and its edges are set to zero.
"""

from fleet_mpi.kernels.numba_settings import compiled


@compiled
def gather(image, columns, at, first, rows, out_size, kernel, strides, before, dilations):
    """Fill ``columns[:, at:]`` with what output rows ``first`` to ``first + rows`` see of ``image`` [C, D, H, W]."""
    wide = out_size[2]
    line = 0
    for c in range(image.shape[0]):
        for kd in range(kernel[0]):
            for kh in range(kernel[1]):
                for kw in range(kernel[2]):
                    target = columns[line, at:at + rows * wide]
                    line += 1
                    for od in range(first // out_size[1], (first + rows - 1) // out_size[1] + 1):
                        top = max(first - od * out_size[1], 0)
                        bottom = min(first + rows - od * out_size[1], out_size[1])
                        start = (od * out_size[1] + top - first) * wide
                        part = target[start:start + (bottom - top) * wide]
                        z = od * strides[0] - before[0] + kd * dilations[0]
                        if z < 0 or z >= image.shape[1]:
                            part[:] = 0
                        else:
                            _gather_plane(image[c, z], part, top, bottom, wide, kh * dilations[1] - before[1],
                                          kw * dilations[2] - before[2], strides[1], strides[2])


@compiled
def scatter(columns, at, image, first, rows, out_size, kernel, strides, before, dilations):
    """Add ``columns[:, at:]`` to the places of ``image`` that ``gather`` would have read; spoils the columns."""
    wide = out_size[2]
    line = 0
    for c in range(image.shape[0]):
        for kd in range(kernel[0]):
            for kh in range(kernel[1]):
                for kw in range(kernel[2]):
                    source = columns[line, at:at + rows * wide]
                    line += 1
                    for od in range(first // out_size[1], (first + rows - 1) // out_size[1] + 1):
                        top = max(first - od * out_size[1], 0)
                        bottom = min(first + rows - od * out_size[1], out_size[1])
                        start = (od * out_size[1] + top - first) * wide
                        part = source[start:start + (bottom - top) * wide]
                        z = od * strides[0] - before[0] + kd * dilations[0]
                        if z >= 0 and z < image.shape[1]:
                            _scatter_plane(part, image[c, z], top, bottom, wide, kh * dilations[1] - before[1],
                                           kw * dilations[2] - before[2], strides[1], strides[2])


@compiled
def copy_matrix(source, target):
    """Copy a matrix whose rows are contiguous into another: to and from images that share a product."""
    for i in range(source.shape[0]):
        line, into = source[i], target[i]
        for j in range(line.size):
            into[j] = line[j]


@compiled
def add_matrix(source, target):
    """``target += source`` for matrices whose rows are contiguous."""
    for i in range(source.shape[0]):
        line, into = source[i], target[i]
        for j in range(line.size):
            into[j] += line[j]


@compiled
def _inside(start, stop, shift, stride, size):
    """The part of range(start, stop) whose i * stride + shift lies within [0, size)."""
    low = min(max(start, -(shift // stride)), stop)
    high = max(min(stop, (size - 1 - shift) // stride + 1), low)
    return low, high


@compiled
def _gather_plane(plane, part, top, bottom, wide, down, right, stride_down, stride_right):
    height, width = plane.shape
    low, high = _inside(top, bottom, down, stride_down, height)
    left, end = _inside(0, wide, right, stride_right, width)
    part[:(low - top) * wide] = 0
    part[(high - top) * wide:] = 0
    if stride_down == 1 and stride_right == 1 and wide == width:
        _gather_run(plane.reshape(height * width), part[(low - top) * wide:(high - top) * wide],
                    (low + down) * width + right, wide, left, end)
        return
    for r in range(low, high):
        line = part[(r - top) * wide:(r - top + 1) * wide]
        line[:left] = 0
        line[end:] = 0
        _pick(plane[r * stride_down + down, left * stride_right + right:], line[left:end], stride_right)


@compiled
def _pick(source, target, stride):
    if stride == 1:
        for j in range(target.size):
            target[j] = source[j]
    elif stride == 2:  # a stride known to the compiler is read in whole registers
        for j in range(target.size):
            target[j] = source[2 * j]
    else:
        for j in range(target.size):
            target[j] = source[stride * j]


@compiled
def _gather_run(plane, run, start, wide, left, end):
    skipped = max(-start, 0)
    length = min(run.size, plane.size - start)
    source, target = plane[start + skipped:], run[skipped:length]
    for j in range(target.size):
        target[j] = source[j]
    _clear_edges(run, wide, left, end)


@compiled
def _clear_edges(run, wide, left, end):
    for r in range(run.size // wide):
        for j in range(left):
            run[r * wide + j] = 0
        for j in range(end, wide):
            run[r * wide + j] = 0


@compiled
def _scatter_plane(part, plane, top, bottom, wide, down, right, stride_down, stride_right):
    height, width = plane.shape
    low, high = _inside(top, bottom, down, stride_down, height)
    left, end = _inside(0, wide, right, stride_right, width)
    if stride_down == 1 and stride_right == 1 and wide == width:
        _scatter_run(part[(low - top) * wide:(high - top) * wide], plane.reshape(height * width),
                     (low + down) * width + right, wide, left, end)
        return
    for r in range(low, high):
        line = part[(r - top) * wide + left:(r - top) * wide + end]
        _put(line, plane[r * stride_down + down, left * stride_right + right:], stride_right)


@compiled
def _put(source, target, stride):
    if stride == 1:
        for j in range(source.size):
            target[j] += source[j]
    elif stride == 2:
        for j in range(source.size):
            target[2 * j] += source[j]
    else:
        for j in range(source.size):
            target[stride * j] += source[j]


@compiled
def _scatter_run(run, plane, start, wide, left, end):
    _clear_edges(run, wide, left, end)
    skipped = max(-start, 0)
    length = min(run.size, plane.size - start)
    source, target = run[skipped:length], plane[start + skipped:]
    for j in range(source.size):
        target[j] += source[j]
