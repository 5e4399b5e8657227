"""Sums, means, products and extremes over dimensions."""

import functools

from fleet_mpi.kernels.reference import summing
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.graph.types import is_float

ATTRS = {"dim": [0], "keep_dim": False, "reduce_all": False}


@op("mean", "X")
class Mean:
    """The mean of all elements, shape [1]."""

    def infer(k):
        k.set("Out", [1], lod=())

    def run(k):
        return functools.partial(summing.mean_of_all.pick(k["X"]), k["X"].reshape(-1), k["Out"])

    def grad(k):
        """Every element gets the same share."""
        dx = k["X@GRAD"]
        return functools.partial(summing.spread.pick(dx), k["Out@GRAD"], dx.reshape(-1))


def reduction(name, grad_reads="", dtype=None):
    """Decorator: enter ``reduce_<name>`` with the attributes and the shape rule all of them share."""
    def enter(body):
        body.infer = lambda k: infer_reduced(k, dtype)
        return op(f"reduce_{name}", "X", attrs=ATTRS, grad_reads=grad_reads)(body)
    return enter


def reduced_axes(k, rank):
    """The dimensions to reduce, counted from 0, in order."""
    dims = k.attr("dim", [0])
    dims = list(dims) if isinstance(dims, (list, tuple)) else [dims]
    if k.attr("reduce_all", False) or not dims:
        return tuple(range(rank))
    for dim in dims:
        if not -max(rank, 1) <= dim < max(rank, 1):
            k.fail(f"dim: expected dimensions of an X with {rank} of them, got {dims}")
    return tuple(sorted({dim % rank for dim in dims})) if rank else ()


def infer_reduced(k, dtype=None):
    """The dimensions left over; [1] where none is. Reduced rows have no sequences any more."""
    shape = k.shape("X")
    axes = reduced_axes(k, len(shape))
    if k.attr("keep_dim", False):
        left = [1 if i in axes else n for i, n in enumerate(shape)]
    else:
        left = [n for i, n in enumerate(shape) if i not in axes]
    k.set("Out", left or [1], dtype, lod=() if 0 in axes or not shape else None)


def kept_shape(shape, axes):
    """The shape with ones where it was reduced: stretches back to the whole."""
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def plain_run(function):
    """``run`` that calls one reducing function of the array module."""
    def run(k):
        x, reduce = k["X"], getattr(k.xp, function)
        axes = reduced_axes(k, x.ndim)
        if function in ("max", "min") and x.size == 0:
            k.fail(f"no {function} of an X without elements, {list(x.shape)}")
        out = k["Out"].reshape(tuple(n for i, n in enumerate(x.shape) if i not in axes))
        return lambda: reduce(x, axis=axes, out=out)
    return run


def stretched_gradient(k):
    """The output's gradient with ones where X was reduced, and the axes."""
    shape = k.shape_of_forward("X")
    axes = reduced_axes(k, len(shape))
    return k["Out@GRAD"].reshape(kept_shape(shape, axes)), axes


@reduction("sum")
class ReduceSum:
    """The sum."""

    run = plain_run("sum")

    def grad(k):
        """Every element gets the whole gradient."""
        (dout, _), dx, xp = stretched_gradient(k), k["X@GRAD"], k.xp
        return lambda: xp.copyto(dx, dout)


@reduction("mean")
class ReduceMean:
    """The mean."""

    def run(k):
        """Sum, then divide by the count."""
        if not is_float(k.dtype("X")):
            k.fail(f"expected floating-point numbers, got {k.dtype('X')}: cast them first")
        total, out, xp = plain_run("sum")(k), k["Out"], k.xp
        count = float(max(k.meta("X").size, 1) // max(k.meta("Out").size, 1))
        return lambda: (total(), xp.divide(out, count, out))

    def grad(k):
        """Every element gets the same share."""
        (dout, _), dx, xp = stretched_gradient(k), k["X@GRAD"], k.xp
        count = float(max(dx.size, 1) // max(dout.size, 1))
        return lambda: xp.divide(dout, count, dx)


def extreme_grad(k):
    """Every element that equals the extreme gets the whole gradient, ties included."""
    (dout, axes), x, dx, xp = stretched_gradient(k), k["X"], k["X@GRAD"], k.xp
    out = k["Out"].reshape(kept_shape(x.shape, axes))

    def run():
        xp.equal(x, out, dx)
        xp.multiply(dx, dout, dx)
    return run


@reduction("max", grad_reads="X Out")
class ReduceMax:
    """The largest."""

    run, grad = plain_run("max"), extreme_grad


@reduction("min", grad_reads="X Out")
class ReduceMin:
    """The smallest."""

    run, grad = plain_run("min"), extreme_grad


@reduction("prod", grad_reads="X")
class ReduceProd:
    """The product."""

    run = plain_run("prod")

    def grad(k):
        """dOut times the product of all other elements: those before it and those behind it.

        Not Out / X: that fails where an element is 0.
        """
        (dout, axes), x, dx, xp = stretched_gradient(k), k["X"], k["X@GRAD"], k.xp
        order = tuple(i for i in range(x.ndim) if i not in axes) + axes
        # One line of elements to multiply per output; reshaping copies where axes are apart.
        count = max(x.size, 1) // max(dout.size, 1)
        back = tuple(order.index(i) for i in range(x.ndim))

        def run():
            moved = xp.transpose(x, order)
            others = products_of_others(xp, moved.reshape(-1, count))
            xp.multiply(xp.transpose(others.reshape(moved.shape), back), dout, dx)
        return run


def products_of_others(xp, lines):
    """For every element of a line the product of the line without it."""
    before, behind = xp.ones_like(lines), xp.ones_like(lines)
    before[:, 1:] = xp.cumprod(lines[:, :-1], axis=1)
    behind[:, :-1] = xp.cumprod(lines[:, :0:-1], axis=1)[:, ::-1]
    return before * behind


@reduction("all", dtype="bool")
class ReduceAll:
    """Whether all are true."""

    run = plain_run("all")


@reduction("any", dtype="bool")
class ReduceAny:
    """Whether one is true."""

    run = plain_run("any")
