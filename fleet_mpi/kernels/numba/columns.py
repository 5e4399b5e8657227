"""Columns of a convolution: what each position of the weight meets, laid out as a matrix for BLAS.

Row (channel, weight position), column (image, output row, output column). ``gather`` fills such a matrix from some
images, ``scatter`` adds one back; ``which`` says (first image, end, group, first channel, end). A stretch of output
rows is done at a time, so that the matrix stays in the cache. Rows of an image lie one after the other in memory; where
the output is as wide as the image, many rows are moved as one long run, shifted, and its edges are set to zero.
"""

from fleet_mpi.kernels.numba.compiling import compiled


@compiled
def gather(array, which, columns, first, rows, out_size, kernel, strides, before, dilations):
    """Fill ``columns`` with what output rows ``first`` to ``first + rows`` see of images [N, groups, C, D, H, W]."""
    start, stop, group, low, high = which
    width = rows * out_size[2]
    for n in range(start, stop):
        line = 0
        for c in range(low, high):
            image = array[n, group, c]
            for kd in range(kernel[0]):
                for kh in range(kernel[1]):
                    for kw in range(kernel[2]):
                        target = columns[line, (n - start) * width:(n - start + 1) * width]
                        line += 1
                        _gather_line(image, target, kd, kh, kw, first, rows, out_size, strides, before, dilations)


@compiled
def scatter(columns, array, which, first, rows, out_size, kernel, strides, before, dilations):
    """Add ``columns`` to the places of the images that ``gather`` would have read; spoils the columns."""
    start, stop, group, low, high = which
    width = rows * out_size[2]
    for n in range(start, stop):
        line = 0
        for c in range(low, high):
            image = array[n, group, c]
            for kd in range(kernel[0]):
                for kh in range(kernel[1]):
                    for kw in range(kernel[2]):
                        source = columns[line, (n - start) * width:(n - start + 1) * width]
                        line += 1
                        _scatter_line(source, image, kd, kh, kw, first, rows, out_size, strides, before, dilations)


@compiled
def gather_by_table(array, which, padded, before, table, taps, columns):
    """What ``gather`` does, where rows are too short to be worth a loop each.

    Column j of tap t comes from ``table[j] + taps[t]`` in ``padded``, which each channel is copied into.
    """
    start, stop, group, low, high = which
    padded[...] = 0
    flat = padded.reshape(padded.size)
    inner = padded[before[0]:, before[1]:, before[2]:]
    for n in range(start, stop):
        line = 0
        for c in range(low, high):
            _copy_volume(array[n, group, c], inner)
            for t in range(taps.size):
                source, target = flat[taps[t]:], columns[line, (n - start) * table.size:(n - start + 1) * table.size]
                line += 1
                for j in range(table.size):
                    target[j] = source[table[j]]


@compiled
def scatter_by_table(columns, array, which, padded, before, table, taps):
    """What ``scatter`` does, where rows are too short to be worth a loop each."""
    start, stop, group, low, high = which
    flat = padded.reshape(padded.size)
    inner = padded[before[0]:, before[1]:, before[2]:]
    for n in range(start, stop):
        line = 0
        for c in range(low, high):
            padded[...] = 0
            for t in range(taps.size):
                source, target = columns[line, (n - start) * table.size:(n - start + 1) * table.size], flat[taps[t]:]
                line += 1
                for j in range(table.size):
                    target[table[j]] += source[j]
            _add_volume(inner, array[n, group, c])


@compiled
def join_images(array, which, columns, first, width):
    """Lay ``width`` positions from ``first`` on of several images [N, groups, C, positions] side by side."""
    start, stop, group, low, high = which
    for n in range(start, stop):
        for c in range(low, high):
            source, target = array[n, group, c, first:first + width], columns[c - low, (n - start) * width:]
            for j in range(width):
                target[j] = source[j]


@compiled
def part_images(columns, array, which, first, width):
    """Bring a matrix of images side by side to the images: what ``join_images`` undoes."""
    start, stop, group, low, high = which
    for n in range(start, stop):
        for c in range(low, high):
            source, target = columns[c - low, (n - start) * width:], array[n, group, c, first:first + width]
            for j in range(width):
                target[j] = source[j]


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
def _gather_line(image, target, kd, kh, kw, first, rows, out_size, strides, before, dilations):
    wide = out_size[2]
    for od in range(first // out_size[1], (first + rows - 1) // out_size[1] + 1):
        top = max(first - od * out_size[1], 0)
        bottom = min(first + rows - od * out_size[1], out_size[1])
        start = (od * out_size[1] + top - first) * wide
        part = target[start:start + (bottom - top) * wide]
        z = od * strides[0] - before[0] + kd * dilations[0]
        if z < 0 or z >= image.shape[0]:
            part[:] = 0
        else:
            _gather_plane(image[z], part, top, bottom, wide, kh * dilations[1] - before[1],
                          kw * dilations[2] - before[2], strides[1], strides[2])


@compiled
def _scatter_line(source, image, kd, kh, kw, first, rows, out_size, strides, before, dilations):
    wide = out_size[2]
    for od in range(first // out_size[1], (first + rows - 1) // out_size[1] + 1):
        top = max(first - od * out_size[1], 0)
        bottom = min(first + rows - od * out_size[1], out_size[1])
        start = (od * out_size[1] + top - first) * wide
        part = source[start:start + (bottom - top) * wide]
        z = od * strides[0] - before[0] + kd * dilations[0]
        if z >= 0 and z < image.shape[0]:
            _scatter_plane(part, image[z], top, bottom, wide, kh * dilations[1] - before[1],
                           kw * dilations[2] - before[2], strides[1], strides[2])


@compiled
def _copy_volume(source, target):
    for z in range(source.shape[0]):
        for y in range(source.shape[1]):
            for x in range(source.shape[2]):
                target[z, y, x] = source[z, y, x]


@compiled
def _add_volume(source, target):
    for z in range(target.shape[0]):
        for y in range(target.shape[1]):
            for x in range(target.shape[2]):
                target[z, y, x] += source[z, y, x]


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
