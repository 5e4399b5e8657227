"""Scaling, clipping, conversion, norms and running sums."""

import functools
import math

import numpy as np

from fleet_mpi.arrays import Rows
from fleet_mpi.program.engine import formula as f
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.graph.types import as_dtype, is_float
from fleet_mpi.program.ops.elementwise import sequence


@op("scale", "X ScaleTensor?", attrs={"scale": 1.0, "bias": 0.0, "bias_after_scale": True},
    inplace={"Out": "X"})
class Scale:
    """X * scale + bias, or (X + bias) * scale; of a row gradient the scaled rows."""

    def infer(k):
        k.set("Out", k.shape("X"), kind=k.meta("X").kind)

    def run(k):
        """One or two passes, block by block."""
        number = float if is_float(k.dtype("X")) else int
        bias, after = number(k.attr("bias")), k.attr("bias_after_scale")
        if k.has("ScaleTensor"):
            return scale_by_variable(k.xp, k["X"], k["ScaleTensor"].reshape(()), bias, after, k["Out"])
        scale = number(k.attr("scale"))
        if isinstance(k["X"], Rows):
            return scale_rows(k, scale)
        bias = bias if after else bias * scale
        return f.bind(k, lambda x: scaled(x, scale, bias), [k["X"]], k["Out"])

    def make_grad(walk, op, grads):
        """The output's gradient, scaled likewise."""
        part = walk.contribution(op.input("X")[0])
        if part:
            inputs = {"X": grads["Out"], "ScaleTensor": [walk.value(op, name) for name in op.input("ScaleTensor")]}
            made = walk.block.append_op("scale", {slot: names for slot, names in inputs.items() if names},
                                        {"Out": [part]}, {"scale": op.attrs["scale"]})
            walk.add(op.input("X")[0], part, made)


def scaled(x, scale, bias):
    """x * scale + bias without the steps that change nothing."""
    x = x if scale == 1 else x * scale
    return x if bias == 0 else x + bias


def scale_rows(k, scale):
    """The call for a row gradient, whose arrays may be others at every run; its rows have no bias."""
    rows, multiply = k["X"], k.xp.multiply
    out, values = Rows(rows.ids, rows.values, rows.height), k.keep(rows.values.shape, rows.values.dtype)
    k.put("Out", out)

    def run():
        out.ids, out.values = rows.ids, values[:len(rows)]
        multiply(rows.values, scale, out.values)
    return run


def scale_by_variable(xp, x, scale, bias, after, out):
    """The call for a scale that is known only when it runs."""
    if after:
        return lambda: (xp.multiply(x, scale, out), xp.add(out, bias, out))
    return lambda: (xp.add(x, bias, out), xp.multiply(out, scale, out))


@op("increment", "X", attrs={"step": 1.0}, inplace={"Out": "X"})
class Increment:
    """X + step, mostly written back to X."""

    def infer(k):
        k.set("Out", k.shape("X"))

    def run(k):
        """Add, in X's type."""
        x, out = k["X"], k["Out"]
        step = (float if is_float(x.dtype) else int)(k.attr("step"))
        return functools.partial(k.xp.add, x, step, out)


@op("cast", "X", attrs={"in_dtype": None, "out_dtype": "float32"})
class Cast:
    """X in another element type."""

    def infer(k):
        """As X but for the type."""
        k.set("Out", k.shape("X"), as_dtype(k.attr("out_dtype")))

    def run(k):
        """Convert as C does."""
        return functools.partial(k.xp.copyto, k["Out"], k["X"], casting="unsafe")

    def grad(k):
        return functools.partial(k.xp.copyto, k["X@GRAD"], k["Out@GRAD"], casting="unsafe")


@op("clip", "X", attrs={"min": None, "max": None}, grad_reads="X", given="Min? Max?", inplace={"Out": "X"},
    grad_inplace={"X@GRAD": "Out@GRAD"})
class Clip:
    """X, but at least ``min`` and at most ``max``."""

    def infer(k):
        if not has_variable_limits(k) and (
                k.attr("min") is None or k.attr("max") is None or k.attr("min") > k.attr("max")):
            k.fail(f"expected min <= max, got min={k.attr('min')} and max={k.attr('max')}")
        k.set("Out", k.shape("X"), k.dtype("X"))

    def run(k):
        """Two passes, block by block."""
        if has_variable_limits(k):
            x, out, xp, (low, high) = k["X"], k["Out"], k.xp, variable_limits(k)
            return lambda: xp.minimum(xp.maximum(x, low()), high(), out=out)
        low, high = clip_limits(k)
        return f.bind(k, lambda x: f.clipped(x, low, high), [k["X"]], k["Out"])

    def grad(k):
        """Passes between the limits."""
        if has_variable_limits(k):
            x, dx, dout, xp, (low, high) = k["X"], k["X@GRAD"], k["Out@GRAD"], k.xp, variable_limits(k)
            return lambda: xp.multiply(dout, (x > low()) & (x < high()), out=dx)
        low, high = clip_limits(k)
        return f.bind(k, lambda dout, x: dout * (x > low) * (x < high), [k["Out@GRAD"], k["X"]], k["X@GRAD"])


def has_variable_limits(k):
    """Whether a limit of ``clip`` is a variable."""
    return k.has("Min") or k.has("Max")


def variable_limits(k):
    """Two functions that give the limits in X's element type, of which one at least may change from run to run."""
    def limit(value, fixed):
        return (lambda: fixed) if value is None else (lambda: value.astype(dtype))
    dtype, (low, high) = k.dtype("X"), clip_limits(k)
    return limit(k["Min"], low), limit(k["Max"], high)


def clip_limits(k):
    """``min`` and ``max``; for whole numbers cut as C does, within what the type holds."""
    limits, dtype = (k.attr("min", -np.inf), k.attr("max", np.inf)), np.dtype(k.dtype("X"))
    if dtype.kind not in "iu":
        return limits
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return tuple(least if limit <= least else most if limit >= most else int(limit) for limit in limits)


def one_axis(k, rank):
    """The attribute ``axis``, counted from 0."""
    axis = k.attr("axis", -1)
    if not -rank <= axis < rank:
        k.fail(f"axis: expected a dimension of an X with {rank} of them, got {axis}")
    return axis % rank


@op("norm", "X", "Out Norm", attrs={"axis": -1, "epsilon": 1e-10}, grad_reads="Out Norm")
class Norm:
    """X divided by its Euclidean norm along an axis; the norm is the root of the sum of squares and epsilon."""

    def infer(k):
        """As X; the norms have 1 along the axis."""
        shape = k.shape("X")
        axis = one_axis(k, len(shape))
        k.set("Out", shape)
        k.set("Norm", tuple(1 if i == axis else n for i, n in enumerate(shape)))

    def run(k):
        x, out, norm, xp, epsilon = k["X"], k["Out"], k["Norm"], k.xp, float(k.attr("epsilon"))
        axis = one_axis(k, x.ndim)
        sums = norm.reshape(norm.shape[:axis] + norm.shape[axis + 1:])

        def run():
            xp.square(x, out)
            xp.sum(out, axis=axis, out=sums)
            xp.sqrt(xp.add(norm, epsilon, norm), norm)
            xp.divide(x, norm, out)
        return run

    def grad(k):
        """(dOut - Out * sum(dOut * Out)) / Norm."""
        out, norm, dout, dx, xp = k["Out"], k["Norm"], k["Out@GRAD"], k["X@GRAD"], k.xp
        axis = one_axis(k, out.ndim)
        sums = k.scratch(norm.shape, norm.dtype)
        flat_sums = sums.reshape(norm.shape[:axis] + norm.shape[axis + 1:])

        def run():
            xp.multiply(dout, out, dx)
            xp.sum(dx, axis=axis, out=flat_sums)
            xp.multiply(out, sums, dx)
            xp.subtract(dout, dx, dx)
            xp.divide(dx, norm, dx)
        return run


@op("p_norm", "X", attrs={"porder": 2.0, "axis": -1, "epsilon": 1e-12, "keepdim": False, "asvector": False},
    grad_reads="X Out")
class PNorm:
    """The p-norm along an axis, or of all elements (``asvector``); p may be infinite."""

    def infer(k):
        """Without the axis, or with 1 there."""
        shape = k.shape("X")
        if k.attr("asvector"):
            k.set("Out", (1,) * len(shape) if k.attr("keepdim") else (1,), lod=())
            return
        axis = one_axis(k, len(shape))
        left = shape[:axis] + ((1,) if k.attr("keepdim") else ()) + shape[axis + 1:]
        k.set("Out", left or (1,), lod=() if axis == 0 else None)

    def run(k):
        """Powers, their sum, the root of it."""
        x, p, xp = k["X"], float(k.attr("porder")), k.xp
        axes, _ = norm_axes(k, x.shape)
        out = k["Out"].reshape(tuple(n for i, n in enumerate(x.shape) if i not in axes))
        powers = k.scratch(x.shape, x.dtype)
        if math.isinf(p):
            extreme = xp.max if p > 0 else xp.min
            return lambda: extreme(xp.absolute(x, powers), axis=axes, out=out)
        if p == 0:
            return lambda: xp.sum(xp.not_equal(x, 0, powers), axis=axes, out=out)
        if p == 2:  # a general power takes 20 times as long
            return lambda: xp.sqrt(xp.sum(xp.square(x, powers), axis=axes, out=out), out)

        def run():
            xp.power(xp.absolute(x, powers), p, powers)
            xp.sum(powers, axis=axes, out=out)
            xp.power(out, 1 / p, out)
        return run

    def grad(k):
        """sign(x) |x|^(p-1) / Out^(p-1) times the output's gradient; for infinite p where |x| is the extreme."""
        x, p, dx, xp = k["X"], float(k.attr("porder")), k["X@GRAD"], k.xp
        _, kept = norm_axes(k, x.shape)
        norm, dout, epsilon = k["Out"].reshape(kept), k["Out@GRAD"].reshape(kept), float(k.attr("epsilon"))

        def run():
            xp.absolute(x, dx)
            if math.isinf(p):
                xp.equal(dx, norm, dx)
            elif p == 0:
                dx.fill(0)
            else:
                xp.divide(dx, norm + epsilon, dx)
                if p != 2:
                    xp.power(dx, p - 1, dx)
            xp.multiply(dx, xp.sign(x), dx)
            xp.multiply(dx, dout, dx)
        return run


def norm_axes(k, shape):
    """The axes that a p_norm sums over, and the shape with ones there."""
    axes = tuple(range(len(shape))) if k.attr("asvector") else (one_axis(k, len(shape)),)
    return axes, tuple(1 if i in axes else n for i, n in enumerate(shape))


@op("cumsum", "X", attrs={"axis": -1, "flatten": False, "exclusive": False, "reverse": False})
class CumSum:
    """Running sums along an axis, with (or without: ``exclusive``) the element itself, from the start or the end."""

    def infer(k):
        """As X, or one line."""
        shape = k.shape("X")
        if k.attr("flatten"):
            k.set("Out", [-1 if -1 in shape else math.prod(shape)], lod=())
        else:
            one_axis(k, len(shape))
            k.set("Out", shape)

    def run(k):
        return running_sum(k, k["X"], k["Out"], bool(k.attr("reverse")))

    def grad(k):
        """Running sums of the gradient from the other end."""
        return running_sum(k, k["Out@GRAD"], k["X@GRAD"], not k.attr("reverse"))


def running_sum(k, x, out, reverse):
    """The call that sums along the axis, from the end where ``reverse``."""
    xp = k.xp
    if k.attr("flatten"):
        x, out, axis = x.reshape(-1), out.reshape(-1), 0
    else:
        axis = one_axis(k, x.ndim)
    x, out = xp.moveaxis(x, axis, 0), xp.moveaxis(out, axis, 0)
    if reverse:
        x, out = x[::-1], out[::-1]
    if not k.attr("exclusive"):
        return lambda: xp.cumsum(x, axis=0, out=out)
    start, rest, before = out[:1], out[1:], x[:-1]

    def run():
        start[...] = 0
        xp.cumsum(before, axis=0, out=rest)
    return run


@op("minus", "X Y")
class Minus:
    """X - Y, of equal shapes."""

    def infer(k):
        if len(k.shape("X")) != len(k.shape("Y")):
            k.fail(f"expected equal shapes, got X {list(k.shape('X'))} and Y {list(k.shape('Y'))}")
        k.set("Out", k.shape("X"))

    def run(k):
        return functools.partial(k.xp.subtract, k["X"], k["Y"], k["Out"])

    def grad(k):
        """The output's gradient, and minus that."""
        dout, dx, dy, xp = k["Out@GRAD"], k["X@GRAD"], k["Y@GRAD"], k.xp
        calls = [functools.partial(xp.copyto, dx, dout) if dx is not None else None,
                 functools.partial(xp.negative, dout, dy) if dy is not None else None]
        return sequence([call for call in calls if call is not None])


@op("cos_sim", "X Y", "Out XNorm YNorm", grad_reads="X Y Out XNorm YNorm")
class CosineSimilarity:
    """The cosine of the angle between the rows of X and those of Y, or Y's only row."""

    def infer(k):
        x, y = k.shape("X"), k.shape("Y")
        if len(x) != len(y) or y[0] not in (1, -1, x[0]) and x[0] != -1 or any(
                a != b and -1 not in (a, b) for a, b in zip(x[1:], y[1:])):
            k.fail(f"expected Y to have the rows of X or one, of equal sizes; got X {list(x)} and Y {list(y)}")
        k.set("Out", [x[0], 1])
        k.set("XNorm", [x[0], 1])
        k.set("YNorm", [y[0], 1], lod=())

    def run(k):
        x, y, out, x_norm, y_norm, xp = k["X"], k["Y"], k["Out"], k["XNorm"], k["YNorm"], k.xp
        x, y = x.reshape(x.shape[0], -1), y.reshape(y.shape[0], -1)
        products = k.scratch(x.shape, x.dtype)

        def run():
            for rows, norm in ((x, x_norm), (y, y_norm)):
                squares = products[:rows.shape[0]]
                xp.sum(xp.square(rows, squares), axis=1, out=norm.reshape(-1))
                xp.sqrt(norm, norm)
            xp.sum(xp.multiply(x, y, products), axis=1, out=out.reshape(-1))
            xp.divide(xp.divide(out, x_norm, out), y_norm, out)
        return run

    def grad(k):
        """Along the other side, less what points along the own: the length does not matter."""
        x, y, cosine, dout = k["X"], k["Y"], k["Out"], k["Out@GRAD"]
        x, y, x_norm, y_norm = x.reshape(x.shape[0], -1), y.reshape(y.shape[0], -1), k["XNorm"], k["YNorm"]
        calls = [cosine_side(k, "X@GRAD", x, y, x_norm, y_norm, cosine, dout),
                 cosine_side(k, "Y@GRAD", y, x, y_norm, x_norm, cosine, dout)]
        return sequence([call for call in calls if call is not None])


def cosine_side(k, slot, own, other, own_norm, other_norm, cosine, dout):
    """The call for one side: dOut (other / |other| - cosine own / |own|) / |own|, summed over a single row's uses."""
    if not k.has(slot):
        return None
    xp, target = k.xp, k[slot].reshape(own.shape)
    full = (cosine.shape[0], own.shape[1])
    term = target if own.shape == full else k.scratch(full, own.dtype)
    share, unit = k.scratch((full[0], 1), own.dtype), k.scratch(full, own.dtype)

    def run():
        xp.divide(dout, own_norm, share)
        xp.divide(own, own_norm, unit)
        xp.multiply(unit, cosine, unit)
        xp.divide(other, other_norm, term)
        xp.subtract(term, unit, term)
        xp.multiply(term, share, term)
        if term is not target:
            xp.sum(term, axis=0, out=target.reshape(-1))
    return run
