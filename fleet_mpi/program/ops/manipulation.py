"""Ops that give the same elements another shape or order: reshape, squeeze, flatten, transpose, reverse, roll.

All but the last three are views where nobody else needs the memory. The forms ending in 2 also
name an output ``XShape``, which holds no element: programs of the original show it.
"""

import itertools

from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.variable_arguments import are_unknown, given_numbers

VIEW = {"view": {"Out": "X"}, "grad_view": {"X@GRAD": "Out@GRAD"}}


def axis_of(k, axis, rank):
    """The dimension that a number means, negative ones from the end."""
    if not -rank <= axis < rank:
        k.fail(f"axis {axis} is outside a variable of {rank} dimensions")
    return axis % rank


def product(sizes):
    """The product of sizes; -1 if one of them is unknown."""
    total = 1
    for size in sizes:
        if size < 0:
            return -1
        total *= size
    return total


def set_with_xshape(k, shape):
    """``Out`` and, where it is named, ``XShape``: X's shape behind a 0, so that it holds nothing."""
    k.set("Out", shape, k.dtype("X"))
    k.set("XShape", (0,) + tuple(k.shape("X")), k.dtype("X"), lod=())


def shape_op(name, inputs="X", attrs=None, given=""):
    """Decorator: enter ``name`` and ``name2`` for a class whose ``shape(k)`` is all that differs."""
    def enter(body):
        body.infer = lambda k: set_with_xshape(k, body.shape(k))
        body.run, body.grad = view_run, view_grad
        op(name, inputs, "Out", attrs, given=given, **VIEW)(body)
        return op(name + "2", inputs, "Out XShape?", attrs, given=given, **VIEW)(body)
    return enter


def view_run(k):
    """The input's elements in the output's shape."""
    return k.view("Out", k["X"].reshape(k.shape("Out")))


def view_grad(k):
    """The output's gradient in the input's shape."""
    return k.view("X@GRAD", k["Out@GRAD"].reshape(k.shape("X@GRAD")))


@shape_op("reshape", "X Shape? ShapeTensor*", {"shape": []})
class Reshape:
    """Another shape; 0 keeps the dimension at that place, one -1 takes what is left."""

    def shape(k):
        """``shape`` with 0 and -1 filled in."""
        by_values = k.has("Shape") or k.has("ShapeTensor")
        return filled_in(k, k.shape("X"), given_numbers(k, "shape", "Shape", "ShapeTensor"), by_values)


def filled_in(k, old, wanted, by_values=False):
    """``wanted`` with 0 (copy) and -1 (the rest) replaced by sizes; -1 stays where the run will tell."""
    loose = by_values and not k.concrete
    if wanted.count(-1) > 1 and not loose:
        k.fail(f"shape {wanted}: at most one -1 can be worked out")
    if any(size < -1 or size == 0 and i >= len(old) for i, size in enumerate(wanted)):
        k.fail(f"shape {wanted} does not fit X {list(old)}: sizes from 1 up, -1, or 0 where X has that dimension")
    # A dimension copied by 0 drops out of both products, so an unknown batch size does no harm.
    left = product(size for i, size in enumerate(old) if not (i < len(wanted) and wanted[i] == 0))
    right = product(size for size in wanted if size not in (0, -1))
    new = [old[i] if size == 0 else size for i, size in enumerate(wanted)]
    if loose or left == -1:
        return new
    if -1 in wanted:
        new[wanted.index(-1)] = left // right if right else 0
    if product(new) != product(old) and product(old) != -1 or -1 in wanted and right and left % right:
        k.fail(f"X {list(old)} cannot be reshaped to {wanted}: the numbers of elements differ")
    return new


@shape_op("squeeze", attrs={"axes": []})
class Squeeze:
    """Without the dimensions of size 1: all of them, or those in ``axes`` that are 1."""

    def shape(k):
        """What is left."""
        shape = k.shape("X")
        axes = {axis_of(k, axis, len(shape)) for axis in k.attr("axes")}
        # A size that is unknown while building is taken for 1 where the dimension is named, as in the original.
        dropped = (1, -1) if axes and not k.concrete else (1,)
        return [size for i, size in enumerate(shape) if not (i in (axes or range(len(shape))) and size in dropped)]


@shape_op("unsqueeze", attrs={"axes": []}, given="AxesTensor? AxesTensorList*")
class Unsqueeze:
    """With dimensions of size 1 put in at ``axes``, one after the other."""

    def shape(k):
        """With ones."""
        shape, axes = list(k.shape("X")), given_numbers(k, "axes", "AxesTensor", "AxesTensorList")
        if are_unknown(k, "AxesTensor AxesTensorList"):
            return [-1] * (len(shape) + len(axes))
        for axis in axes:
            shape.insert(axis_of(k, axis, len(shape) + 1), 1)
        return shape


@shape_op("flatten", attrs={"axis": 1})
class Flatten:
    """A matrix: the dimensions before ``axis`` are its rows."""

    def shape(k):
        """Two dimensions."""
        shape, axis = k.shape("X"), k.attr("axis")
        if not 0 <= axis <= len(shape):
            k.fail(f"axis {axis} is outside 0 .. {len(shape)}")
        return [product(shape[:axis]), product(shape[axis:])]


@op("flatten_contiguous_range", "X", "Out XShape?", {"start_axis": 1, "stop_axis": -1}, **VIEW)
class FlattenRange:
    """The dimensions from ``start_axis`` to ``stop_axis`` made one."""

    def infer(k):
        shape = k.shape("X")
        start, stop = (axis_of(k, k.attr(name), len(shape)) for name in ("start_axis", "stop_axis"))
        if start > stop:
            k.fail(f"start_axis {start} lies behind stop_axis {stop}")
        set_with_xshape(k, [*shape[:start], product(shape[start:stop + 1]), *shape[stop + 1:]])

    run = view_run
    grad = view_grad


class Transpose:
    """The dimensions in the order ``axis``, copied so that the result lies contiguous."""

    def infer(k):
        """Sizes in the new order."""
        shape, order = k.shape("X"), list(k.attr("axis"))
        if sorted(one % max(len(shape), 1) for one in order) != list(range(len(shape))):
            k.fail(f"expected axis to be an order of the {len(shape)} dimensions of X, got {order}")
        set_with_xshape(k, [shape[i] for i in order])

    def run(k):
        """Copy from a transposed view."""
        turned, out, xp = k["X"].transpose(k.attr("axis")), k["Out"], k.xp
        return lambda: xp.copyto(out, turned)

    def grad(k):
        """Copy back in the opposite order."""
        order = [one % len(k.attr("axis")) for one in k.attr("axis")]
        back = [order.index(i) for i in range(len(order))]
        turned, dx, xp = k["Out@GRAD"].transpose(back), k["X@GRAD"], k.xp
        return lambda: xp.copyto(dx, turned)


op("transpose", "X", "Out", {"axis": []})(Transpose)
op("transpose2", "X", "Out XShape?", {"axis": []})(Transpose)


class Reverse:
    """Back to front along the dimensions in ``axis``."""

    def infer(k):
        """As X; the sequences would be mixed, so there are none."""
        k.set("Out", k.shape("X"), lod=())

    def run(k):
        """Copy from a reversed view."""
        x, out, xp = flipped(k, k["X"]), k["Out"], k.xp
        return lambda: xp.copyto(out, x)

    def grad(k):
        dout, dx, xp = flipped(k, k["Out@GRAD"]), k["X@GRAD"], k.xp
        return lambda: xp.copyto(dx, dout)


def flipped(k, x):
    """A view that runs backwards along ``axis``."""
    axes = k.attr("axis")
    axes = {axis_of(k, axis, x.ndim) for axis in ([axes] if isinstance(axes, int) else axes)}
    return x[tuple(slice(None, None, -1 if i in axes else 1) for i in range(x.ndim))]


op("reverse", "X", "Out", {"axis": [0]})(Reverse)
op("flip", "X", "Out", {"axis": [0]})(Reverse)


@op("roll", "X", attrs={"shifts": [], "axis": []})
class Roll:
    """Elements moved by ``shifts`` along ``axis``; those that leave come in again at the other end."""

    def infer(k):
        if len(k.attr("shifts")) != max(len(k.attr("axis")), 1):
            k.fail(f"expected a shift for each axis, got {k.attr('shifts')} and {k.attr('axis')}")
        k.set("Out", k.shape("X"), lod=())

    def run(k):
        return rolled(k, k["X"], k["Out"], 1)

    def grad(k):
        return rolled(k, k["Out@GRAD"], k["X@GRAD"], -1)


def rolled(k, source, target, sign):
    """The call that copies the parts of an array to their places; without an axis, of the elements in a row."""
    if not k.attr("axis"):
        source, target = source.reshape(-1), target.reshape(-1)
    shifts = [0] * source.ndim
    for shift, axis in zip(k.attr("shifts"), k.attr("axis") or [0]):
        shifts[axis_of(k, axis, source.ndim)] += sign * shift
    sides = [turned_parts(shift % size if size else 0, size) for shift, size in zip(shifts, source.shape)]
    pairs = [(target[tuple(new for new, _ in part)], source[tuple(old for _, old in part)])
             for part in itertools.product(*sides)]
    copyto = k.xp.copyto
    return lambda: [copyto(new, old) for new, old in pairs]


def turned_parts(shift, size):
    """(where it goes, where it is) of the parts that a dimension falls into when it is turned."""
    if shift == 0:
        return [(slice(None), slice(None))]
    return [(slice(shift, None), slice(0, size - shift)), (slice(0, shift), slice(size - shift, None))]
