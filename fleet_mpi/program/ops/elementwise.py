"""Arithmetic of two variables, element by element.

``Y`` is stretched to ``X`` as numpy does, or, with ``axis`` from 0 up, aligned with ``X``'s
dimensions from that one on: [2, 3, 4, 5] + [3, 4] with axis 1.
"""

import math

from fleet_mpi.kernels.reference import summing
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.graph.types import is_float


def aligned(shape, rank, axis):
    """``Y``'s shape with ones added so that numpy's rule stretches it as ``axis`` says."""
    if axis is None or axis < 0 or len(shape) >= rank:
        return tuple(shape)
    trimmed = list(shape)
    while len(trimmed) > 1 and axis + len(trimmed) > rank and trimmed[-1] == 1:
        trimmed.pop()  # [N, 1] may be added to [N] along axis 0
    return tuple(trimmed) + (1,) * (rank - axis - len(trimmed))


def stretched(one, other):
    """The shape both are stretched to; -1 (unknown) wins over 1 and gives way to a known size."""
    rank = max(len(one), len(other))
    one, other = ((1,) * (rank - len(shape)) + tuple(shape) for shape in (one, other))
    out = []
    for a, b in zip(one, other):
        if a != b and 1 not in (a, b) and -1 not in (a, b):
            raise ValueError(f"shapes {list(one)} and {list(other)} cannot be stretched to each other")
        out.append(b if a == 1 else a if b == 1 else max(a, b))
    return tuple(out)


def infer_binary(k, dtype=None):
    """``Out`` has the stretched shape of ``X`` and ``Y``."""
    x, y = k.shape("X"), k.shape("Y")
    axis = k.attr("axis", -1)
    if axis >= 0 and len(x) >= len(y) and axis + len(y) > len(x) and any(n != 1 for n in y[len(x) - axis:]):
        k.fail(f"axis {axis}: Y {list(y)} does not fit into X {list(x)} from that dimension on")
    if k.dtype("X") != k.dtype("Y") and dtype is None:
        k.fail(f"X is {k.dtype('X')} but Y is {k.dtype('Y')}: cast one of them")
    out = stretched(x, aligned(y, len(x), axis))
    if k.concrete and len(x) != len(y):
        refuse_outer(k, out)
    k.set("Out", out, dtype or k.dtype("X"))


def refuse_outer(k, out):
    """Refuse [N, 1] against [N], an [N, N], where the program was built for operands of the same dimensions.

    Only feeds that lack a dimension lead here, and training on the result would be wrong in silence.
    """
    vars = [k.op.block.find_var(k.name(slot)) for slot in ("X", "Y")]
    if None in vars:  # a cast that only the plan has
        return
    built = [var.shape for var in vars]
    larger = math.prod(out) > max(math.prod(k.shape("X")), math.prod(k.shape("Y")))
    if larger and len(built[0]) == len(built[1]):
        k.fail(f"X {list(k.shape('X'))} and Y {list(k.shape('Y'))} would make {list(out)}, but the program was built "
               f"for {list(built[0])} and {list(built[1])}: feed arrays of these shapes")


def operands(k):
    """``X`` and ``Y`` as arrays that numpy's rule stretches to each other."""
    x, y = k["X"], k["Y"]
    return x, y.reshape(aligned(y.shape, x.ndim, k.attr("axis", -1)))


def reducer(k, slot, value_shape, aligned_shape):
    """How to write a stretched gradient into ``slot``: a function of the array to sum down."""
    target = k[slot]
    if target is None:
        return None
    xp = k.xp
    shape = (1,) * (len(value_shape) - len(aligned_shape)) + tuple(aligned_shape)
    axes = tuple(i for i, (n, full) in enumerate(zip(shape, value_shape)) if n == 1 and full != 1)
    if not axes:
        return lambda value: xp.copyto(target, value.reshape(target.shape))
    if axes == tuple(range(len(axes))):  # the leading dimensions: the bias of a dense layer
        kernel, flat = summing.sum_of_rows.pick(target), target.reshape(-1)
        return lambda value: kernel(value.reshape(-1, flat.size), flat)
    if axes == (0, *range(2, len(shape))):  # all but the second: the bias of a convolution
        kernel, flat = summing.sum_of_channels.pick(target), target.reshape(-1)
        folded = (value_shape[0], flat.size, math.prod(value_shape[2:]))  # said in full: a batch may be empty
        return lambda value: kernel(value.reshape(folded), flat)
    summed = target.reshape(tuple(n for i, n in enumerate(shape) if i not in axes))
    return lambda value: xp.sum(value, axis=axes, out=summed)


def shapes_of(k):
    """The shapes of Out, X and aligned Y, for the gradients."""
    x, y = k.shape_of_forward("X"), k.shape_of_forward("Y")
    return k.shape("Out@GRAD"), x, aligned(y, len(x), k.attr("axis", -1))


def binary(name, grad_reads="", **traits):
    """Decorator: enter ``elementwise_<name>`` with the slots and the shape rule all of them share."""
    def enter(body):
        body.infer = infer_binary
        return op(f"elementwise_{name}", "X Y", attrs={"axis": -1}, grad_reads=grad_reads, **traits)(body)
    return enter


def plain_run(function_name):
    """``run`` that calls one function of the array module."""
    def run(k):
        (x, y), out, function = operands(k), k["Out"], getattr(k.xp, function_name)
        return lambda: function(x, y, out=out)
    return run


@binary("add", inplace={"Out": "X"}, grad_view={"X@GRAD": "Out@GRAD", "Y@GRAD": "Out@GRAD"})
class Add:
    """X + Y."""

    run = plain_run("add")

    def grad(k):
        """Both gradients are the output's, summed where the operand was stretched."""
        dout = k["Out@GRAD"]
        calls = [call for call in (pass_on(k, "X", dout), pass_on(k, "Y", dout)) if call is not None]
        return sequence(calls)


def pass_on(k, slot, dout):
    """The call that hands the output's gradient to an operand; None where a view does."""
    full, x, y = shapes_of(k)
    grad = slot + "@GRAD"
    if not k.has(grad):
        return None
    if not is_stretched(x if slot == "X" else y, full):
        shape = k.meta(grad).shape
        return k.view(grad, dout if tuple(dout.shape) == tuple(shape) else dout.reshape(shape))
    write = reducer(k, grad, full, x if slot == "X" else y)
    return lambda: write(dout)


def is_stretched(shape, full):
    """Whether an operand is used more than once; [3] in [1, 3] is not."""
    return math.prod(shape) != math.prod(full)


def sequence(calls):
    """One call from several; None from none."""
    if len(calls) <= 1:
        return calls[0] if calls else None
    first, second, *rest = calls
    return sequence([lambda: (first(), second()), *rest])


@binary("sub", inplace={"Out": "X"}, grad_view={"X@GRAD": "Out@GRAD"})
class Sub:
    """X - Y."""

    run = plain_run("subtract")

    def grad(k):
        """Y's gradient has the other sign."""
        dout, xp = k["Out@GRAD"], k.xp
        full, _, y = shapes_of(k)
        calls = [pass_on(k, "X", dout)]
        if k.has("Y@GRAD"):
            target = k["Y@GRAD"]
            if not is_stretched(y, full):
                source = dout.reshape(target.shape)
                calls.append(lambda: xp.negative(source, target))
            else:
                write = reducer(k, "Y@GRAD", full, y)
                calls.append(lambda: (write(dout), xp.negative(target, target)))
        return sequence([call for call in calls if call is not None])


def product_rule(k, terms):
    """The call that writes each wanted gradient; ``terms`` maps a slot to a function(out) that fills
    the stretched gradient."""
    full, x, y = shapes_of(k)
    calls = []
    for slot, shape in (("X", x), ("Y", y)):
        grad = slot + "@GRAD"
        if k.has(grad):
            calls.append(_term_call(k, grad, terms[slot], full, shape))
    return sequence(calls)


def _term_call(k, grad, term, full, shape):
    target = k[grad]
    if not is_stretched(shape, full):
        flat = target.reshape(full)
        return lambda: term(flat)
    scratch = k.scratch(full, target.dtype)
    write = reducer(k, grad, full, shape)
    return lambda: (term(scratch), write(scratch))


@binary("mul", grad_reads="X Y")
class Mul:
    """X * Y."""

    run = plain_run("multiply")

    def grad(k):
        """dX = dOut * Y, dY = dOut * X."""
        (x, y), dout, xp = operands(k), k["Out@GRAD"], k.xp
        return product_rule(k, {"X": lambda out: xp.multiply(dout, y, out),
                                "Y": lambda out: xp.multiply(dout, x, out)})


@binary("div", grad_reads="X Y Out")
class Div:
    """X / Y; of integers the whole part of the quotient."""

    def run(k):
        """One pass; integers go through floating-point numbers."""
        if is_float(k.dtype("X")):
            return plain_run("divide")(k)
        (x, y), out, xp = operands(k), k["Out"], k.xp
        quotient = k.scratch(out.shape, "float64")

        def run():
            xp.divide(x, y, quotient)
            xp.trunc(quotient, quotient)
            xp.copyto(out, quotient, casting="unsafe")
        return run

    def grad(k):
        """dX = dOut / Y, dY = -dOut * Out / Y."""
        (_, y), quotient, dout, xp = operands(k), k["Out"], k["Out@GRAD"], k.xp

        def for_y(out):
            xp.multiply(dout, quotient, out)
            xp.divide(out, y, out)
            xp.negative(out, out)
        return product_rule(k, {"X": lambda out: xp.divide(dout, y, out), "Y": for_y})


def where(xp, compare, x, y, dout):
    """A term for ``product_rule``: the output's gradient where the comparison holds, else 0."""
    def term(out):
        compare(x, y, out)
        xp.multiply(out, dout, out)
    return term


@binary("max", grad_reads="X Y")
class Max:
    """The larger of X and Y; a tie's gradient goes to Y."""

    run = plain_run("maximum")

    def grad(k):
        """The output's gradient goes to the operand that was chosen."""
        (x, y), dout, xp = operands(k), k["Out@GRAD"], k.xp
        return product_rule(k, {"X": where(xp, xp.greater, x, y, dout), "Y": where(xp, xp.less_equal, x, y, dout)})


@binary("min", grad_reads="X Y")
class Min:
    """The smaller of X and Y; a tie's gradient goes to Y."""

    run = plain_run("minimum")

    def grad(k):
        """The output's gradient goes to the operand that was chosen."""
        (x, y), dout, xp = operands(k), k["Out@GRAD"], k.xp
        return product_rule(k, {"X": where(xp, xp.less, x, y, dout), "Y": where(xp, xp.greater_equal, x, y, dout)})


@binary("pow", grad_reads="X Y Out")
class Pow:
    """X to the power of Y."""

    run = plain_run("power")

    def grad(k):
        """dX = dOut * Y * X^(Y-1), dY = dOut * Out * log(X), taken as 0 where X <= 0."""
        (x, y), power, dout, xp = operands(k), k["Out"], k["Out@GRAD"], k.xp

        def for_x(out):
            xp.power(x, y - 1, out)
            xp.multiply(out, y, out)
            xp.multiply(out, dout, out)

        def for_y(out):
            xp.multiply(power, xp.log(xp.where(x > 0, x, 1.0)), out)
            xp.multiply(out, dout, out)
        return product_rule(k, {"X": for_x, "Y": for_y})


@binary("mod")
class Mod:
    """The remainder, with the sign of Y."""

    run = plain_run("remainder")


@binary("floordiv")
class FloorDiv:
    """The quotient rounded down."""

    run = plain_run("floor_divide")
