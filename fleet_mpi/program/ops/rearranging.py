"""Ops that move channels, pixels, time steps and parts of variables to other places."""

from fleet_mpi.kernels.reference import random
from fleet_mpi.program.engine.outside import id_check
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.drawing import drawn
from fleet_mpi.program.ops.manipulation import axis_of, product
from fleet_mpi.program.ops.variable_arguments import given_numbers


def permuting(type, attrs):
    """Decorator: enter an op that folds X, transposes it and unfolds it; the class gives ``shape`` and ``fold``.

    ``fold(k, shape)`` returns the folded shape and the order of its dimensions.
    """
    def enter(body):
        def infer(k):
            if len(k.shape("X")) != 4:
                k.fail(f"expected images [N, C, H, W], got {list(k.shape('X'))}")
            k.set("Out", body.shape(k, k.shape("X")), lod=())

        def run(k):
            split, order = body.fold(k, k.shape("X"))
            turned, xp = k["X"].reshape(split).transpose(order), k.xp
            out = k["Out"].reshape(turned.shape)
            return lambda: xp.copyto(out, turned)

        def grad(k):
            split, order = body.fold(k, k.shape_of_forward("X"))
            dx, xp = k["X@GRAD"].reshape(split).transpose(order), k.xp
            dout = k["Out@GRAD"].reshape(dx.shape)
            return lambda: xp.copyto(dx, dout)
        body.infer, body.run, body.grad = infer, run, grad
        return op(type, "X", attrs=attrs)(body)
    return enter


def divided(k, size, by, what):
    """A size divided by a factor; -1 stays, a remainder is refused."""
    if size == -1:
        return -1
    if by < 1 or size % by:
        k.fail(f"expected a {what} divisible by {by}, got {size} of X {list(k.shape('X'))}")
    return size // by


def times(size, by):
    """A size times a factor; -1 stays."""
    return -1 if size == -1 else size * by


@permuting("shuffle_channel", {"group": 1})
class ShuffleChannel:
    """Channels dealt out in turn from ``group`` groups."""

    def shape(k, shape):
        """As X."""
        divided(k, shape[1], k.attr("group"), "number of channels")
        return shape

    def fold(k, shape):
        """[N, group, channels of a group, H, W], the two in the middle exchanged."""
        n, c, h, w = shape
        return (n, k.attr("group"), c // k.attr("group"), h, w), (0, 2, 1, 3, 4)


@permuting("space_to_depth", {"blocksize": 1})
class SpaceToDepth:
    """Pixels made channels, in the original's order (that of Darknet's reorg layer).

    The channels are read as [block row, block column, rest] and laid out as an image that is ``blocksize`` times
    larger; those numbers in a row are the output.
    """

    def shape(k, shape):
        """blocksize^2 times the channels of smaller images."""
        size = k.attr("blocksize")
        divided(k, shape[1], size * size, "number of channels")
        return (shape[0], times(shape[1], size * size), divided(k, shape[2], size, "height"),
                divided(k, shape[3], size, "width"))

    def fold(k, shape):
        """[N, rest, H, block row, W, block column]."""
        (n, c, h, w), size = shape, k.attr("blocksize")
        return (n, size, size, c // (size * size), h, w), (0, 3, 4, 1, 5, 2)


@permuting("pixel_shuffle", {"upscale_factor": 1})
class PixelShuffle:
    """Channels made pixels: [N, C r^2, H, W] as [N, C, H r, W r]."""

    def shape(k, shape):
        """Larger images of fewer channels."""
        factor = k.attr("upscale_factor")
        return (shape[0], divided(k, shape[1], factor * factor, "number of channels"), times(shape[2], factor),
                times(shape[3], factor))

    def fold(k, shape):
        """[N, C, H, r, W, r]."""
        (n, c, h, w), factor = shape, k.attr("upscale_factor")
        return (n, c // (factor * factor), factor, factor, h, w), (0, 1, 4, 2, 5, 3)


@op("temporal_shift", "X", attrs={"seg_num": 1, "shift_ratio": 0.25})
class TemporalShift:
    """[N * seg_num, C, H, W] with some channels taken from the step before, as many from the step after."""

    def infer(k):
        shape = k.shape("X")
        if len(shape) != 4 or not 0 < k.attr("shift_ratio") <= 0.5:
            k.fail(f"expected X [N * T, C, H, W] and a shift_ratio in (0, 0.5], got {list(shape)} and "
                   f"{k.attr('shift_ratio')}")
        divided(k, shape[0], k.attr("seg_num"), "number of images")
        k.set("Out", shape)

    def run(k):
        """Three copies; zeros where a step has no neighbour."""
        return shift_call(k, k["X"], k["Out"], 1)

    def grad(k):
        """The same, the other way round."""
        return shift_call(k, k["Out@GRAD"], k["X@GRAD"], -1)


def shift_call(k, source, target, sign):
    """The call that moves the first channels by ``sign`` steps, the next ones by as many the other way."""
    xp, steps = k.xp, k.attr("seg_num")
    one, two = (int(source.shape[1] * k.attr("shift_ratio") * share) for share in (1, 2))
    folded = (source.shape[0] // steps, steps) + tuple(source.shape[1:])
    source, target = source.reshape(folded), target.reshape(folded)
    later, earlier = slice(1, None), slice(None, -1)
    first, second = (later, earlier) if sign == 1 else (earlier, later)
    copies = [(target[:, first, :one], source[:, second, :one]),
              (target[:, second, one:two], source[:, first, one:two]),
              (target[:, :, two:], source[:, :, two:])]

    def run():
        target.fill(0)
        for into, part in copies:
            xp.copyto(into, part)
    return run


@op("maxout", "X", attrs={"groups": 1, "axis": 1}, grad_reads="X")
class Maxout:
    """The largest of each ``groups`` neighbouring channels."""

    def infer(k):
        shape = list(k.shape("X"))
        axis = axis_of(k, k.attr("axis"), len(shape))
        shape[axis] = divided(k, shape[axis], k.attr("groups"), "number of channels")
        k.set("Out", shape)

    def run(k):
        """The maximum along a dimension of its own."""
        x, xp = channel_groups(k, k["X"]), k.xp
        out = k["Out"].reshape(x.shape[:2] + x.shape[3:])
        return lambda: xp.copyto(out, xp.max(x, axis=2))

    def grad(k):
        """To the first of the largest."""
        x, dx, xp = channel_groups(k, k["X"]), channel_groups(k, k["X@GRAD"]), k.xp
        dout = k["Out@GRAD"].reshape(x.shape[:2] + (1,) + x.shape[3:])

        def run():
            dx.fill(0)
            xp.put_along_axis(dx, xp.expand_dims(xp.argmax(x, axis=2), 2), dout, axis=2)
        return run


def channel_groups(k, x):
    """[before, channels / groups, groups, behind]."""
    axis, groups = k.attr("axis") % x.ndim, k.attr("groups")
    return x.reshape(product(x.shape[:axis]), x.shape[axis] // groups, groups, product(x.shape[axis + 1:]))


@op("multiplex", "X* Ids", grad_reads="Ids")
class Multiplex:
    """Row i of the input that Ids[i] names, for each i."""

    def infer(k):
        """As the inputs, which are alike."""
        shapes = k.shapes("X")
        if len(shapes) < 2 or any(len(one) != len(shapes[0]) for one in shapes):
            k.fail(f"expected two or more inputs of one shape, got {[list(one) for one in shapes]}")
        k.set("Out", shapes[0], lod=())

    def run(k):
        """A masked copy from each input."""
        out, xp, ids, values = k["Out"], k.xp, k["Ids"].reshape(-1), k.all("X")
        check, mask = id_check(k, len(values), "the list of inputs"), row_mask(k, out)

        def run():
            check(ids)
            for number, value in enumerate(values):
                xp.copyto(out, value, where=mask(ids, number))
        return run

    def grad(k):
        dout, xp, ids, wanted = k["Out@GRAD"], k.xp, k["Ids"].reshape(-1), k.all("X@GRAD")
        mask = row_mask(k, dout)

        def run():
            for number, dx in enumerate(wanted):
                if dx is not None:
                    dx.fill(0)
                    xp.copyto(dx, dout, where=mask(ids, number))
        return run


def row_mask(k, like):
    """The function of ids and a number that marks the rows whose id it is."""
    shape = (-1,) + (1,) * (like.ndim - 1)
    return lambda ids, number: (ids == number).reshape(shape)


@op("pad_constant_like", "X Y", attrs={"pad_value": 0.0}, no_grad="X")
class PadConstantLike:
    """Y with a value behind it along each dimension, up to the shape of X."""

    def infer(k):
        big, small = k.shape("X"), k.shape("Y")
        if len(big) != len(small) or any(a < b and -1 not in (a, b) for a, b in zip(big, small)):
            k.fail(f"expected Y no larger than X, got Y {list(small)} and X {list(big)}")
        k.set("Out", big, k.dtype("Y"), lod=())

    def run(k):
        """Fill, then copy the corner."""
        y, out, xp, value = k["Y"], k["Out"], k.xp, float(k.attr("pad_value"))
        corner = out[tuple(slice(size) for size in y.shape)]
        return lambda: (out.fill(value), xp.copyto(corner, y))

    def grad(k):
        dy, xp = k["Y@GRAD"], k.xp
        corner = k["Out@GRAD"][tuple(slice(size) for size in dy.shape)]
        return lambda: xp.copyto(dy, corner)


class Crop:
    """The part of X of a given shape that begins at ``offsets``; a size of -1 reaches to the end."""

    def infer(k):
        shape, offsets, wanted = k.shape("X"), offsets_of(k), wanted_of(k)
        if not len(shape) == len(offsets) == len(wanted):
            k.fail(f"expected an offset and a size for each dimension of X {list(shape)}, got {offsets} and {wanted}")
        out = [size - start if want == -1 and -1 not in (size, start) else want
               for size, start, want in zip(shape, offsets, wanted)]
        if any(-1 not in (size, start, want) and not 0 <= start <= start + want <= size
               for size, start, want in zip(shape, offsets, out)):
            k.fail(f"the part of shape {out} from {offsets} on lies outside X {list(shape)}")
        k.set("Out", out, k.dtype("X"), lod=())

    def run(k):
        part, out, xp = k["X"][cropped(k, k.shape("Out"))], k["Out"], k.xp
        return lambda: xp.copyto(out, part)

    def grad(k):
        dx, dout, xp = k["X@GRAD"], k["Out@GRAD"], k.xp
        part = dx[cropped(k, dout.shape)]
        return lambda: (dx.fill(0), xp.copyto(part, dout))


def offsets_of(k):
    """Where the part begins: zeros unless told; -1 where only the run will tell."""
    given = given_numbers(k, "offsets", "Offsets", "OffsetsTensor")
    return given or [0] * len(k.shape("X"))


def wanted_of(k):
    """The sizes of the part: those of Y, or as told."""
    return list(k.shape("Y")) if k.has("Y") else given_numbers(k, "shape", "Shape", "ShapeTensor")


def cropped(k, shape):
    """The index of the part; in the gradient too, whose op knows the forward's variables by name."""
    if "Offsets" in k.op.inputs or "OffsetsTensor" in k.op.inputs or k.attr("offsets"):
        offsets = given_numbers(k, "offsets", "Offsets", "OffsetsTensor")
    else:
        offsets = [0] * len(shape)
    return tuple(slice(start, start + size) for start, size in zip(offsets, shape))


CROP_ATTRS = {"offsets": [], "shape": []}
op("crop", "X Y? Offsets?", attrs=CROP_ATTRS, grad_reads="Offsets", no_grad="Y Offsets")(Crop)
op("crop_tensor", "X Shape? Offsets? ShapeTensor* OffsetsTensor*", attrs=CROP_ATTRS,
   grad_reads="Offsets OffsetsTensor", no_grad="Shape Offsets ShapeTensor OffsetsTensor")(Crop)


@op("random_crop", "X", attrs={"shape": [], "seed": 0})
class RandomCrop:
    """Of each sample a part of the wanted shape, at a place drawn anew for each sample and run."""

    def infer(k):
        """The last dimensions become those wanted."""
        shape, wanted = list(k.shape("X")), list(k.attr("shape"))
        kept = len(shape) - len(wanted)
        if kept < 1 or any(size != -1 and want > size for size, want in zip(shape[kept:], wanted)):
            k.fail(f"expected a shape that fits into the samples of X {shape}, got {wanted}")
        k.set("Out", shape[:kept] + wanted, lod=())

    def run(k):
        """Draw places, then pick elements by position."""
        xp, wanted = k.xp, list(k.attr("shape"))
        kept = k["X"].ndim - len(wanted)
        x = k["X"].reshape((product(k["X"].shape[:kept]),) + tuple(k["X"].shape[kept:]))
        out = k["Out"].reshape((x.shape[0],) + tuple(wanted))
        words = k.scratch((len(wanted), x.shape[0]), "uint32")
        draw = drawn(k, words, random.random_bits)
        lines = [xp.arange(size).reshape(along(i + 1, x.ndim)) for i, size in enumerate(wanted)]
        samples, column = xp.arange(x.shape[0]).reshape(along(0, x.ndim)), along(0, x.ndim)

        def run():
            draw()
            places = [(words[i] % (x.shape[i + 1] - size + 1)).astype("int64").reshape(column) + line
                      for i, (size, line) in enumerate(zip(wanted, lines))]
            xp.copyto(out, x[(samples, *places)])
        return run


def along(axis, rank):
    """The shape that lays a line along one of ``rank`` dimensions."""
    return (1,) * axis + (-1,) + (1,) * (rank - axis - 1)


@op("tril_triu", "X", attrs={"diagonal": 0, "lower": True})
class TrilTriu:
    """Matrices with zeros above (``lower``) or below a diagonal."""

    def infer(k):
        if len(k.shape("X")) < 2:
            k.fail(f"expected matrices, got X {list(k.shape('X'))}")
        k.set("Out", k.shape("X"))

    def run(k):
        """Zeros, then the part that is kept."""
        return triangle_call(k, k["X"], k["Out"])

    def grad(k):
        return triangle_call(k, k["Out@GRAD"], k["X@GRAD"])


def triangle_call(k, source, target):
    """The call that copies one triangle."""
    xp = k.xp
    triangle = (xp.tril if k.attr("lower") else xp.triu)(xp.ones(tuple(source.shape[-2:]), bool), k.attr("diagonal"))
    return lambda: (target.fill(0), xp.copyto(target, source, where=triangle))


@op("meshgrid", "X*", "Out*")
class Meshgrid:
    """Each input spread over the grid that all of them span."""

    def infer(k):
        """The lengths of all inputs."""
        shapes = k.shapes("X")
        if any(len(one) > 1 for one in shapes):
            k.fail(f"expected inputs of one dimension, got {[list(one) for one in shapes]}")
        for i in range(k.count("Out")):
            k.set("Out", [one[0] for one in shapes], k.dtype("X", i), lod=(), index=i)

    def run(k):
        xp, values, outs = k.xp, k.all("X"), k.all("Out")
        pairs = [(out, x.reshape(along(i, len(values)))) for i, (x, out) in enumerate(zip(values, outs))
                 if out is not None]

        def run():
            for out, x in pairs:
                xp.copyto(out, x)
        return run

    def grad(k):
        """The sum over all other dimensions."""
        xp, pairs = k.xp, list(zip(k.all("X@GRAD"), k.all("Out@GRAD")))

        def run():
            for i, (dx, dout) in enumerate(pairs):
                if dx is not None and dout is None:
                    dx.fill(0)
                elif dx is not None:
                    xp.sum(dout, axis=tuple(j for j in range(dout.ndim) if j != i), out=dx)
        return run
