"""Normalisation within a sample: by groups of channels, by channel (instance norm), across neighbouring channels (lrn).

Groups are rows of the layer norm kernel; scale and bias, one number per channel, follow in place.
"""

import math

from fleet_mpi.kernels.reference import normalization as kernels
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.elementwise import reducer
from fleet_mpi.program.ops.normalization import channel_axis


def check_scale(k, channels):
    """Refuse a Scale or Bias that does not have one number per channel."""
    for slot in ("Scale", "Bias"):
        if k.has(slot) and -1 not in (channels, *k.shape(slot)) and k.meta(slot).size != channels:
            k.fail(f"X {list(k.shape('X'))} has {channels} channels, but {slot} has shape {list(k.shape(slot))}")


def channels_first(k, array, axis):
    """(the array as [N, C, ...], the call that fills it): a copy where the channels lie elsewhere."""
    if axis == 1:
        return array, None
    turned = k.xp.moveaxis(array, axis, 1)
    copy, xp = k.scratch(turned.shape, array.dtype), k.xp
    return copy, lambda: xp.copyto(copy, turned)


def run_by_group(k, groups, mean, inverse):
    """Normalise rows of ``channels / groups`` planes each, then scale and shift every channel."""
    axis, y, xp = channel_axis(k), k["Y"], k.xp
    x, turn = channels_first(k, k["X"], axis)
    work = y if axis == 1 else k.scratch(x.shape, x.dtype)
    rows = (x.shape[0] * groups, -1)
    norm = kernels.layer_norm_forward(x.reshape(rows), None, None, work.reshape(rows), mean.reshape(-1),
                                      inverse.reshape(-1), k.attr("epsilon"), 1)
    spread = [None if k[slot] is None else k[slot].reshape((1, -1) + (1,) * (x.ndim - 2)) for slot in ("Scale", "Bias")]

    def run():
        if turn is not None:
            turn()
        norm()
        for function, values in zip((xp.multiply, xp.add), spread):
            if values is not None:
                function(work, values, out=work)
        if work is not y:
            xp.copyto(xp.moveaxis(y, axis, 1), work)
    return run


def grad_by_group(k, groups, mean, inverse):
    """The layer norm's gradient of the scaled gradient; sums over each channel for scale and bias."""
    axis, xp, given = channel_axis(k), k.xp, k["Y@GRAD"]
    x, turn_x = channels_first(k, k["X"], axis)
    dy, turn_dy = channels_first(k, given, axis)
    term = k.scratch(x.shape, x.dtype)
    dx = k["X@GRAD"] if axis == 1 and k["X@GRAD"] is not None else k.scratch(x.shape, x.dtype)
    rows, column = (x.shape[0] * groups, -1), (1, -1) + (1,) * (x.ndim - 2)
    scale = None if k["Scale"] is None else k["Scale"].reshape(column)
    back = kernels.layer_norm_backward(x.reshape(rows), term.reshape(rows), None, mean.reshape(-1),
                                       inverse.reshape(-1), dx.reshape(rows), None, None, 1)
    per_channel = (1, x.shape[1]) + (1,) * (x.ndim - 2)
    write_scale, write_bias = (reducer(k, slot, x.shape, per_channel) for slot in ("Scale@GRAD", "Bias@GRAD"))

    def run():
        for turn in (turn_x, turn_dy):
            if turn is not None:
                turn()
        if write_bias is not None:
            write_bias(dy)
        if write_scale is not None:
            flat = term.reshape(rows)
            xp.subtract(x.reshape(rows), mean.reshape(-1, 1), out=flat)
            xp.multiply(flat, inverse.reshape(-1, 1), out=flat)
            write_scale(xp.multiply(term, dy, out=term))
        if k["X@GRAD"] is not None:
            xp.multiply(dy, 1 if scale is None else scale, out=term)
            back()
            if axis != 1:
                xp.copyto(xp.moveaxis(k["X@GRAD"], axis, 1), dx)
    return run


@op("group_norm", "X Scale? Bias?", "Y Mean Variance", attrs={"groups": 1, "epsilon": 1e-5, "data_layout": "NCHW"},
    grad_reads="X Scale Mean Variance")
class GroupNorm:
    """Each group of channels of a sample brought to mean 0 and variance 1, then scaled and shifted by channel.

    Variance holds 1 / sqrt(variance + epsilon), as that of layer_norm does.
    """

    def infer(k):
        """Y as X; a mean and a variance per sample and group."""
        groups, channels = k.attr("groups"), k.shape("X")[channel_axis(k)]
        if groups < 1 or channels != -1 and channels % groups:
            k.fail(f"expected groups to divide the {channels} channels of X {list(k.shape('X'))}, got {groups}")
        check_scale(k, channels)
        k.set("Y", k.shape("X"))
        k.set("Mean", [k.shape("X")[0], groups], lod=())
        k.set("Variance", [k.shape("X")[0], groups], lod=())

    def run(k):
        return run_by_group(k, k.attr("groups"), k["Mean"], k["Variance"])

    def grad(k):
        return grad_by_group(k, k.attr("groups"), k["Mean"], k["Variance"])


@op("instance_norm", "X Scale? Bias?", "Y SavedMean SavedVariance", attrs={"epsilon": 1e-5},
    grad_reads="X Scale SavedMean SavedVariance")
class InstanceNorm:
    """Each channel of each sample brought to mean 0 and variance 1, then scaled and shifted."""

    def infer(k):
        """Y as X; a mean and a variance per sample and channel."""
        if len(k.shape("X")) < 2:
            k.fail(f"expected X with a batch and a channel dimension, got {list(k.shape('X'))}")
        batch, channels = k.shape("X")[:2]
        check_scale(k, channels)
        k.set("Y", k.shape("X"))
        planes = -1 if -1 in (batch, channels) else batch * channels
        k.set("SavedMean", [planes], lod=())
        k.set("SavedVariance", [planes], lod=())

    def run(k):
        return run_by_group(k, k.shape("X")[1], k["SavedMean"], k["SavedVariance"])

    def grad(k):
        return grad_by_group(k, k.shape("X")[1], k["SavedMean"], k["SavedVariance"])


def neighbours_summed(k, source, out, n, before, axis):
    """The call that sums along ``axis``, for each place, ``n`` elements from ``before`` places ahead on."""
    xp, size = k.xp, source.shape[axis]

    def part(array, start, stop):
        return array[(slice(None),) * axis + (slice(start, stop),)]
    pairs = [(part(out, max(-j, 0), size - max(j, 0)), part(source, max(j, 0), size - max(-j, 0)))
             for j in range(-before, n - before) if abs(j) < size]

    def run():
        out.fill(0)
        for target, value in pairs:
            xp.add(target, value, out=target)
    return run


@op("lrn", "X", "Out MidOut", attrs={"n": 5, "k": 1.0, "alpha": 1e-4, "beta": 0.75, "data_format": "NCHW"},
    grad_reads="X Out MidOut")
class Lrn:
    """x / (k + alpha * the squares of ``n`` neighbouring channels, summed) ^ beta; MidOut is the base of the power."""

    def infer(k):
        if len(k.shape("X")) != 4 or k.attr("data_format") not in ("NCHW", "NHWC"):
            k.fail(f"expected images [N, C, H, W] or [N, H, W, C], got {list(k.shape('X'))} as "
                   f"{k.attr('data_format')!r}")
        k.set("Out", k.shape("X"))
        k.set("MidOut", k.shape("X"))

    def run(k):
        """Squares, their sums, the power."""
        x, out, middle, xp, n = k["X"], k["Out"], k["MidOut"], k.xp, k.attr("n")
        base, alpha, beta = (float(k.attr(name)) for name in ("k", "alpha", "beta"))
        sums = neighbours_summed(k, out, middle, n, (n - 1) // 2, lrn_axis(k))

        def run():
            xp.square(x, out=out)
            sums()
            xp.multiply(middle, alpha, out=middle)
            xp.add(middle, base, out=middle)
            xp.power(middle, -beta, out=out)
            xp.multiply(out, x, out=out)
        return run

    def grad(k):
        """The direct term, less what x adds to its neighbours' bases."""
        x, out, middle, dout, dx, xp, n = k["X"], k["Out"], k["MidOut"], k["Out@GRAD"], k["X@GRAD"], k.xp, k.attr("n")
        alpha, beta = float(k.attr("alpha")), float(k.attr("beta"))
        ratio, total = k.scratch(x.shape, x.dtype), k.scratch(x.shape, x.dtype)
        sums = neighbours_summed(k, ratio, total, n, n - 1 - (n - 1) // 2, lrn_axis(k))

        def run():
            xp.divide(xp.multiply(dout, out, out=ratio), middle, out=ratio)
            sums()
            xp.multiply(xp.multiply(total, x, out=total), 2 * alpha * beta, out=total)
            xp.multiply(xp.power(middle, -beta, out=ratio), dout, out=ratio)
            xp.subtract(ratio, total, out=dx)
        return run


def lrn_axis(k):
    """The dimension of the channels."""
    return 3 if k.attr("data_format") == "NHWC" else 1


@op("spectral_norm", "Weight U V", attrs={"dim": 0, "power_iters": 1, "eps": 1e-12}, grad_reads="Weight U V",
    no_grad="U V")
class SpectralNorm:
    """A weight divided by its largest singular value, which power iteration from U and V finds.

    U and V themselves stay as they are, as in the original's kernel: each run starts from them.
    """

    def infer(k):
        """As Weight; U and V fit it as a matrix whose rows lie along ``dim``."""
        shape, dim = k.shape("Weight"), k.attr("dim")
        if dim not in (0, 1) or not 2 <= len(shape) <= 5:
            k.fail(f"expected a weight of 2 to 5 dimensions and dim 0 or 1, got {list(shape)} and {dim}")
        sizes = shape[dim], math.prod(shape) // max(shape[dim], 1)
        if (k.meta("U").size, k.meta("V").size) != sizes:
            k.fail(f"expected U and V of {sizes} numbers, got {list(k.shape('U'))} and {list(k.shape('V'))}")
        k.set("Out", shape)

    def run(k):
        weight, out, xp = k["Weight"], k["Out"], k.xp

        def run():
            _, _, sigma = largest_singular(k)
            xp.divide(weight, sigma, out=out)
        return run

    def grad(k):
        """The vectors count as constants."""
        weight, dout, dx, xp, dim = k["Weight"], k["Out@GRAD"], k["Weight@GRAD"], k.xp, k.attr("dim")

        def run():
            u, v, sigma = largest_singular(k)
            share = xp.sum(dout * weight) / (sigma * sigma)
            outer = share * u[:, None] * v[None, :]
            turned = xp.moveaxis(dx, dim, 0)
            xp.copyto(turned, outer.reshape(turned.shape))
            xp.subtract(dout / sigma, dx, out=dx)
        return run


def largest_singular(k):
    """(u, v, sigma) of Weight as a matrix, after ``power_iters`` steps."""
    xp, eps = k.xp, float(k.attr("eps"))
    turned = xp.moveaxis(k["Weight"], k.attr("dim"), 0)
    matrix = turned.reshape(turned.shape[0], -1)
    u, v = k["U"].reshape(-1), k["V"].reshape(-1)
    for _ in range(k.attr("power_iters")):
        v = xp.matmul(u, matrix)
        v = v / (xp.sqrt(xp.sum(v * v)) + eps)
        u = xp.matmul(matrix, v)
        u = u / (xp.sqrt(xp.sum(u * u)) + eps)
    return u, v, xp.sum(u * xp.matmul(matrix, v))
