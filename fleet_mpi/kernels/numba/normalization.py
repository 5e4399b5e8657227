"""Batch norm and layer norm on the host: a channel (or row) is read, summed and written while in the cache.

A piece is a block of channels or rows whose number follows from the shape. Sums run in lanes
over stretches of a fixed length, and over those in float64: good to the last bits of float32, and
the same on any number of threads. Where channels lie side by side in memory (``inner`` is 1) the loops
over columns in ``numba_normalization_columns`` serve.
"""

import numpy as np

from fleet_mpi.kernels.numba import normalization_columns as by_columns
from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.reference import normalization
from fleet_mpi.kernels.reference.normalization import channel_view_shape, check_channels, row_view_shape
from fleet_mpi.kernels.threads import for_each, pieces, scratch

LEAST_PIECE = 32768  # numbers; a piece of fewer is done before another thread wakes up
LINE = 16  # float32 of a cache line: two threads must not write to one
ROWS_OF_A_SUM = 64  # rows whose share of layer norm's gradients is summed in one go
LANES = 256  # sums that run side by side: a loop of this length is worth starting
STRETCH = 8192  # numbers summed in their own precision before float64 takes over


def batch_norm_forward(x, scale, bias, out, mean, inv_std, running_mean, running_var, momentum, epsilon, relu, axis):
    """Bind training's forward pass over host arrays."""
    vectors = (scale, bias, mean, inv_std, running_mean, running_var)
    if not _usable(x, out, *vectors):
        return normalization.batch_norm_forward.reference(
            x, scale, bias, out, *vectors[2:], momentum, epsilon, relu, axis)
    shape = channel_view_shape(x.shape, axis)
    check_channels("batch norm", shape[1], scale=scale, bias=bias, mean=mean, inv_std=inv_std,
                   running_mean=running_mean, running_var=running_var)
    values, made = _views(shape, x, out)
    run = by_columns.forward if shape[2] == 1 else _forward
    vectors = [vector.reshape(-1) for vector in vectors]
    return _over_channels(shape, lambda start, stop: run(
        values, made, start, stop, *vectors, float(momentum), float(epsilon), bool(relu)))


def batch_norm_inference(x, scale, bias, mean, variance, out, inv_std, epsilon, relu, axis):
    """Bind the forward pass by given statistics over host arrays."""
    kept = np.empty_like(mean) if inv_std is None else inv_std
    vectors = (scale, bias, mean, variance, kept)
    if not _usable(x, out, *vectors):
        return normalization.batch_norm_inference.reference(
            x, scale, bias, mean, variance, out, inv_std, epsilon, relu, axis)
    shape = channel_view_shape(x.shape, axis)
    check_channels("batch norm", shape[1], scale=scale, bias=bias, mean=mean, variance=variance, inv_std=kept)
    values, made = _views(shape, x, out)
    run = by_columns.inference if shape[2] == 1 else _inference
    vectors = [vector.reshape(-1) for vector in vectors]
    return _over_channels(shape, lambda start, stop: run(
        values, made, start, stop, *vectors, float(epsilon), bool(relu)))


def batch_norm_backward(x, dout, out, scale, mean, inv_std, dx, dscale, dbias, frozen, axis):
    """Bind the gradients over host arrays."""
    relu, mask = out is not None, x if out is None else out
    vectors = (scale, mean, inv_std, dscale, dbias)
    if not _usable(x, dout, mask, dx, *vectors):
        return normalization.batch_norm_backward.reference(
            x, dout, out, scale, mean, inv_std, dx, dscale, dbias, frozen, axis)
    shape = channel_view_shape(x.shape, axis)
    check_channels("batch norm", shape[1], scale=scale, mean=mean, inv_std=inv_std, dscale=dscale, dbias=dbias)
    arrays = _views(shape, x, dout, mask, dx)
    run = by_columns.backward if shape[2] == 1 else _backward
    vectors = [vector.reshape(-1) for vector in vectors]
    return _over_channels(shape, lambda start, stop: run(
        *arrays, start, stop, *vectors, relu, bool(frozen)))


def layer_norm_forward(x, scale, bias, out, mean, inv_std, epsilon, begin_axis):
    """Bind layer norm's forward pass over host arrays."""
    shape = row_view_shape(x.shape, begin_axis)
    factor = np.ones(shape[1], x.dtype) if scale is None else scale
    offset = np.zeros(shape[1], x.dtype) if bias is None else bias
    if not _usable(x, out, factor, offset, mean, inv_std):
        return normalization.layer_norm_forward.reference(x, scale, bias, out, mean, inv_std, epsilon, begin_axis)
    check_channels("layer norm", shape[1], scale=factor, bias=offset)
    check_channels("layer norm's statistics", shape[0], mean=mean, inv_std=inv_std)
    values, made = _views((1,) + shape, x, out)
    vectors = [vector.reshape(-1) for vector in (factor, offset, mean, inv_std)]
    parts = pieces(shape[0], max(LEAST_PIECE // max(shape[1], 1), 1))
    return lambda: for_each(lambda i: _layer_forward(
        values, made, parts[i].start, parts[i].stop, *vectors, float(epsilon)), len(parts))


def layer_norm_backward(x, dout, scale, mean, inv_std, dx, dscale, dbias, begin_axis):
    """Bind layer norm's gradients over host arrays."""
    shape = row_view_shape(x.shape, begin_axis)
    factor = np.ones(shape[1], x.dtype) if scale is None else scale
    targets = [target for target in (dscale, dbias) if target is not None]
    if not _usable(x, dout, factor, mean, inv_std, dx, *targets):
        return normalization.layer_norm_backward.reference(
            x, dout, scale, mean, inv_std, dx, dscale, dbias, begin_axis)
    check_channels("layer norm", shape[1], scale=factor, dscale=dscale, dbias=dbias)
    arrays = _views((1,) + shape, x, dout, dx)
    vectors = [vector.reshape(-1) for vector in (factor, mean, inv_std)]
    parts = pieces(shape[0], max(LEAST_PIECE // max(shape[1], 1), ROWS_OF_A_SUM))

    def run():
        sums = scratch("sums", (len(parts), 2, shape[1]), np.float64)
        for_each(lambda i: _layer_backward(
            *arrays, parts[i].start, parts[i].stop, *vectors, sums[i, 0], sums[i, 1]), len(parts))
        for target, share in ((dscale, 0), (dbias, 1)):
            if target is not None:
                # Along the first axis numpy adds row after row: in the order of the pieces.
                target[...] = sums[:, share].sum(axis=0).reshape(target.shape)
    return run


def _usable(first, *others):
    return first.dtype.char in "fd" and all(
        array.dtype == first.dtype and array.flags.c_contiguous for array in (first, *others))


def _views(shape, *arrays):
    return [array.reshape(shape) for array in arrays]


def _over_channels(shape, work):
    outer, channels, inner = shape
    size = max(LEAST_PIECE // max(outer * inner, 1), 1)
    if inner == 1:
        size = -(-size // LINE) * LINE
    parts = pieces(channels, size)
    return lambda: for_each(lambda i: work(parts[i].start, parts[i].stop), len(parts))


@compiled
def _forward(x, out, start, stop, scale, bias, mean, inv_std, running_mean, running_var, momentum, epsilon, relu):
    kind = x.dtype.type
    count = x.shape[0] * x.shape[2]
    lanes = np.empty(LANES, x.dtype)
    for c in range(start, stop):
        total = _sum(x, c, lanes)
        centre = kind(total / count)
        variance = _sum_of_squares(x, c, centre, lanes) / count
        mean[c] = centre
        inv_std[c] = kind(1 / np.sqrt(variance + epsilon))
        running_mean[c] = kind(momentum * running_mean[c] + (1 - momentum) * (total / count))
        running_var[c] = kind(momentum * running_var[c] + (1 - momentum) * variance)
        for n in range(x.shape[0]):
            _apply(x[n, c], out[n, c], centre, kind(inv_std[c] * scale[c]), bias[c], relu)


@compiled
def _inference(x, out, start, stop, scale, bias, mean, variance, inv_std, epsilon, relu):
    kind = x.dtype.type
    for c in range(start, stop):
        inv_std[c] = kind(1 / np.sqrt(np.float64(variance[c]) + epsilon))
        for n in range(x.shape[0]):
            _apply(x[n, c], out[n, c], mean[c], kind(inv_std[c] * scale[c]), bias[c], relu)


@compiled
def _apply(x, out, centre, factor, offset, relu):
    if relu:
        zero = x.dtype.type(0)
        for j in range(x.size):
            made = (x[j] - centre) * factor + offset
            out[j] = zero if made < zero else made  # a NaN stays one
    else:
        for j in range(x.size):
            out[j] = (x[j] - centre) * factor + offset


@compiled
def _backward(x, dout, out, dx, start, stop, scale, mean, inv_std, dscale, dbias, relu, frozen):
    kind = x.dtype.type
    count = x.shape[0] * x.shape[2]
    lanes, more_lanes = np.empty(LANES, x.dtype), np.empty(LANES, x.dtype)
    for c in range(start, stop):
        plain, along = _gradient_sums(dout, out, x, c, mean[c], relu, lanes, more_lanes)
        along *= inv_std[c]
        dbias[c] = kind(plain)
        dscale[c] = kind(along)
        shift = kind(0) if frozen else kind(plain / count)
        slope = kind(0) if frozen else kind(along / count * inv_std[c])
        factor = kind(scale[c] * inv_std[c])
        for n in range(x.shape[0]):
            _apply_backward(x[n, c], dout[n, c], out[n, c], dx[n, c], mean[c], shift, slope, factor, relu)


@compiled
def _apply_backward(x, dout, out, dx, centre, shift, slope, factor, relu):
    zero = x.dtype.type(0)
    if relu:
        for j in range(x.size):
            given = dout[j] if out[j] > zero else zero
            dx[j] = (given - shift - (x[j] - centre) * slope) * factor
    else:
        for j in range(x.size):
            dx[j] = (dout[j] - shift - (x[j] - centre) * slope) * factor


@compiled
def _layer_forward(x, out, start, stop, scale, bias, mean, inv_std, epsilon):
    kind = x.dtype.type
    count = x.shape[2]
    lanes = np.empty(LANES, x.dtype)
    for r in range(start, stop):
        row, made = x[0, r], out[0, r]
        centre = kind(_sum(x, r, lanes) / count)
        inverse = kind(1 / np.sqrt(_sum_of_squares(x, r, centre, lanes) / count + epsilon))
        mean[r] = centre
        inv_std[r] = inverse
        for j in range(count):
            made[j] = (row[j] - centre) * inverse * scale[j] + bias[j]


@compiled
def _layer_backward(x, dout, dx, start, stop, scale, mean, inv_std, dscale, dbias):
    kind = x.dtype.type
    count = x.shape[2]
    lanes, more_lanes = np.empty(LANES, x.dtype), np.empty(LANES, x.dtype)
    dscale[:] = 0
    dbias[:] = 0
    for r in range(start, stop):
        row, given, made = x[0, r], dout[0, r], dx[0, r]
        centre, inverse = mean[r], inv_std[r]
        for j in range(count):
            dbias[j] += given[j]
            dscale[j] += given[j] * ((row[j] - centre) * inverse)
        for j in range(count):
            made[j] = given[j] * scale[j]
        plain, along = _gradient_sums(dx, dx, x, r, centre, False, lanes, more_lanes)
        shift = kind(plain / count)
        slope = kind(along / count * inverse * inverse)
        for j in range(count):
            made[j] = (made[j] - shift - (row[j] - centre) * slope) * inverse


@compiled
def _sum(values, c, lanes):
    """The sum in float64. Number j goes to lane j % LANES: loops over lanes vectorise, a running sum does not."""
    total, pending = 0.0, 0
    lanes[:] = 0
    for r in range(values.shape[0]):
        for at in range(0, values.shape[2], LANES):
            part = values[r, c, at:at + LANES]
            for j in range(part.size):
                lanes[j] += part[j]
            pending += part.size
            if pending > STRETCH:
                total += _lanes_together(lanes)
                pending = 0
    return total + _lanes_together(lanes)


@compiled
def _sum_of_squares(values, c, centre, lanes):
    """The sum of ``(values - centre) ** 2``, added like ``_sum``."""
    total, pending = 0.0, 0
    lanes[:] = 0
    for r in range(values.shape[0]):
        for at in range(0, values.shape[2], LANES):
            part = values[r, c, at:at + LANES]
            for j in range(part.size):
                far = part[j] - centre
                lanes[j] += far * far
            pending += part.size
            if pending > STRETCH:
                total += _lanes_together(lanes)
                pending = 0
    return total + _lanes_together(lanes)


@compiled
def _gradient_sums(dout, out, x, c, centre, relu, lanes, more_lanes):
    """The sums of ``dout`` and of ``dout * (x - centre)``, where relu let it pass; added like ``_sum``."""
    plain, along, pending = 0.0, 0.0, 0
    lanes[:] = 0
    more_lanes[:] = 0
    for r in range(x.shape[0]):
        for at in range(0, x.shape[2], LANES):
            values = x[r, c, at:at + LANES]
            _add_gradients(dout[r, c, at:at + LANES], out[r, c, at:at + LANES], values, centre, relu, lanes, more_lanes)
            pending += values.size
            if pending > STRETCH:
                plain += _lanes_together(lanes)
                along += _lanes_together(more_lanes)
                pending = 0
    return plain + _lanes_together(lanes), along + _lanes_together(more_lanes)


@compiled
def _add_gradients(dout, out, x, centre, relu, lanes, more_lanes):
    # Two loops, because one that writes both lanes has too many arrays for the compiler to tell apart.
    zero = x.dtype.type(0)
    if relu:
        for j in range(x.size):
            lanes[j] += dout[j] if out[j] > zero else zero
        for j in range(x.size):
            more_lanes[j] += (dout[j] if out[j] > zero else zero) * (x[j] - centre)
    else:
        for j in range(x.size):
            lanes[j] += dout[j]
        for j in range(x.size):
            more_lanes[j] += dout[j] * (x[j] - centre)


@compiled
def _lanes_together(lanes):
    """The lanes' sum; they are zero afterwards."""
    width = LANES // 2
    while width > 0:
        for j in range(width):
            lanes[j] += lanes[j + width]
        width //= 2
    total = np.float64(lanes[0])
    lanes[:] = 0
    return total
