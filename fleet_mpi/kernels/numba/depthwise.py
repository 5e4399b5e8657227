"""Convolution where every channel is read alone: too thin for BLAS, so plain loops over rows.

One piece is one channel of the input with all images, so a channel's weight gradient is summed in
batch order whatever the number of threads.
"""

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.threads import for_each


def fits(g):
    """Whether a convolution of this geometry is depthwise."""
    return g.group_in == 1 and g.groups > 1


def bind_forward(g, x, w, out):
    """The function that computes ``out`` of a depthwise convolution."""
    x, w, out = _views(g, x, w, out)
    return lambda: for_each(lambda c: _forward(
        x[:, c], w[c], out[:, c], g.strides, g.before, g.dilations), g.groups)


def bind_backward_data(g, dout, w, dx):
    """The function that computes ``dx`` of a depthwise convolution."""
    dx, w, dout = _views(g, dx, w, dout)
    return lambda: for_each(lambda c: _backward_data(
        dout[:, c], w[c], dx[:, c], g.strides, g.before, g.dilations), g.groups)


def bind_backward_weight(g, x, dout, dw):
    """The function that computes ``dw`` of a depthwise convolution."""
    x, dw, dout = _views(g, x, dw, dout)
    return lambda: for_each(lambda c: _backward_weight(
        x[:, c], dout[:, c], dw[c], g.strides, g.before, g.dilations), g.groups)


def _views(g, x, w, out):
    return (x.reshape((g.batch, g.groups) + g.size), w.reshape((g.groups, g.group_out) + g.kernel),
            out.reshape((g.batch, g.groups, g.group_out) + g.out_size))


@compiled
def _inside(count, shift, stride, size):
    """The part of range(count) whose i * stride + shift lies within [0, size)."""
    low = min(max(0, -(shift // stride)), count)
    return low, max(min(count, (size - 1 - shift) // stride + 1), low)


@compiled
def _forward(x, w, out, strides, before, dilations):
    out[...] = 0
    for n in range(out.shape[0]):
        for m in range(out.shape[1]):
            for kd in range(w.shape[1]):
                dz = kd * dilations[0] - before[0]
                z0, z1 = _inside(out.shape[2], dz, strides[0], x.shape[1])
                for kh in range(w.shape[2]):
                    dy = kh * dilations[1] - before[1]
                    y0, y1 = _inside(out.shape[3], dy, strides[1], x.shape[2])
                    for kw in range(w.shape[3]):
                        dx = kw * dilations[2] - before[2]
                        x0, x1 = _inside(out.shape[4], dx, strides[2], x.shape[3])
                        weight = w[m, kd, kh, kw]
                        for z in range(z0, z1):
                            for y in range(y0, y1):
                                source = x[n, z * strides[0] + dz, y * strides[1] + dy, x0 * strides[2] + dx:]
                                _add_scaled(source, weight, out[n, m, z, y, x0:x1], strides[2])


@compiled
def _add_scaled(source, weight, target, stride):
    if stride == 1:
        for j in range(target.size):
            target[j] += source[j] * weight
    else:
        for j in range(target.size):
            target[j] += source[j * stride] * weight


@compiled
def _backward_data(dout, w, dx, strides, before, dilations):
    dx[...] = 0
    for n in range(dout.shape[0]):
        for m in range(dout.shape[1]):
            for kd in range(w.shape[1]):
                dz = kd * dilations[0] - before[0]
                z0, z1 = _inside(dout.shape[2], dz, strides[0], dx.shape[1])
                for kh in range(w.shape[2]):
                    dy = kh * dilations[1] - before[1]
                    y0, y1 = _inside(dout.shape[3], dy, strides[1], dx.shape[2])
                    for kw in range(w.shape[3]):
                        shift = kw * dilations[2] - before[2]
                        x0, x1 = _inside(dout.shape[4], shift, strides[2], dx.shape[3])
                        weight = w[m, kd, kh, kw]
                        for z in range(z0, z1):
                            for y in range(y0, y1):
                                target = dx[n, z * strides[0] + dz, y * strides[1] + dy, x0 * strides[2] + shift:]
                                _spread_scaled(dout[n, m, z, y, x0:x1], weight, target, strides[2])


@compiled
def _spread_scaled(source, weight, target, stride):
    if stride == 1:
        for j in range(source.size):
            target[j] += source[j] * weight
    else:
        for j in range(source.size):
            target[j * stride] += source[j] * weight


@compiled
def _backward_weight(x, dout, dw, strides, before, dilations):
    for m in range(dout.shape[1]):
        for kd in range(dw.shape[1]):
            dz = kd * dilations[0] - before[0]
            z0, z1 = _inside(dout.shape[2], dz, strides[0], x.shape[1])
            for kh in range(dw.shape[2]):
                dy = kh * dilations[1] - before[1]
                y0, y1 = _inside(dout.shape[3], dy, strides[1], x.shape[2])
                for kw in range(dw.shape[3]):
                    shift = kw * dilations[2] - before[2]
                    x0, x1 = _inside(dout.shape[4], shift, strides[2], x.shape[3])
                    total = 0.0
                    for n in range(x.shape[0]):
                        for z in range(z0, z1):
                            for y in range(y0, y1):
                                source = x[n, z * strides[0] + dz, y * strides[1] + dy, x0 * strides[2] + shift:]
                                total += _dot(source, dout[n, m, z, y, x0:x1], strides[2])
                    dw[m, kd, kh, kw] = total


@compiled
def _dot(source, given, stride):
    # Eight sums side by side, because one would wait for itself at every step.
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = source.dtype.type(0)
    whole = given.size // 8
    for b in range(whole):
        s, t = source[b * 8 * stride:], given[b * 8:]
        a0 += s[0] * t[0]
        a1 += s[stride] * t[1]
        a2 += s[2 * stride] * t[2]
        a3 += s[3 * stride] * t[3]
        a4 += s[4 * stride] * t[4]
        a5 += s[5 * stride] * t[5]
        a6 += s[6 * stride] * t[6]
        a7 += s[7 * stride] * t[7]
    total = np.float64(((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7)))
    for j in range(whole * 8, given.size):
        total += np.float64(source[j * stride]) * given[j]
    return total
