"""Functions of one variable, element by element: a row each, with its derivative.

A row gives the formula of x, and the formula of the output's gradient and of either x or out,
whichever the derivative needs; attributes follow in the order they are declared.
"""

import math
from types import SimpleNamespace

import numpy as np

from fleet_mpi.kernels.reference.activation import relu_backward, relu_backward_in_place
from fleet_mpi.program.engine import formula as f
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.graph.types import is_float
from fleet_mpi.program.ops.elementwise import reducer

# These make sense for whole numbers too; exp, as in the original, gives the whole part of what it is.
TAKES_INTEGERS = {"abs", "exp", "square", "sign", "pow"}
# {type: (forward, attributes with their defaults)}, for whoever writes a formula in other terms (export/onnx_ops).
FORMULAS = {}
IN_PLACE = {"inplace": {"Out": "X"}, "grad_inplace": {"X@GRAD": "Out@GRAD"}}


def activation(type, forward, backward, reads, **attrs):
    """Enter an op ``Out = forward(x, *attrs)``, ``X@GRAD = backward(dout, x or out, *attrs)``."""
    def infer(k):
        if not is_float(k.dtype("X")) and type not in TAKES_INTEGERS:
            k.fail(f"expected X to hold floating-point numbers, got {k.dtype('X')}: cast it first")
        k.set("Out", k.shape("X"))

    def values(k):
        # Python numbers, not numpy's: those would change the element type, and a device refuses them.
        return [default.__class__(k.attr(name, default)) for name, default in attrs.items()]

    def run(k):
        if type == "exp" and not is_float(k.dtype("X")):
            return whole_part(k, k.xp.exp)
        given = values(k)
        return f.bind(k, lambda x: forward(x, *given), [k["X"]], k["Out"])

    def grad(k):
        given = values(k)
        return f.bind(k, lambda dout, read: backward(dout, read, *given),
                      [k["Out@GRAD"], k[reads]], k["X@GRAD"])

    FORMULAS[type] = forward, attrs
    op(type, "X", attrs=attrs, grad_reads=reads, **IN_PLACE)(SimpleNamespace(infer=infer, run=run, grad=grad))


def whole_part(k, function):
    """The call that gives whole numbers, cut as C cuts them, of a function computed in float64."""
    x, out, xp = k["X"], k["Out"], k.xp
    found = k.scratch(out.shape, "float64")

    def run():
        function(x, found)
        # What no whole number of the type can hold is any of them, in the original too: not worth a warning.
        with np.errstate(over="ignore", invalid="ignore"):
            xp.copyto(out, found, casting="unsafe")
    return run


@op("relu", "X", grad_reads="Out", **IN_PLACE)
class Relu:
    """max(x, 0)."""

    def infer(k):
        k.set("Out", k.shape("X"))

    def run(k):
        return f.bind(k, lambda x: f.maximum(x, 0), [k["X"]], k["Out"])

    def grad(k):
        """One pass, in the memory of the output's gradient where nobody else needs that."""
        out, dout, dx = (k[slot].reshape(-1) for slot in ("Out", "Out@GRAD", "X@GRAD"))
        if k.xp.may_share_memory(dout, dx):
            kernel = relu_backward_in_place.pick(dx)
            return lambda: kernel(out, dx)
        kernel = relu_backward.pick(dx)
        return lambda: kernel(out, dout, dx)


activation("sigmoid", f.sigmoid, lambda d, out: d * out * (1 - out), "Out")
activation("logsigmoid", lambda x: f.minimum(x, 0) - f.log1p(f.exp(-abs(x))),
           lambda d, x: d * f.sigmoid(-x), "X")
activation("tanh", f.tanh, lambda d, out: d * (1 - f.square(out)), "Out")
activation("tanh_shrink", lambda x: x - f.tanh(x), lambda d, x: d * f.square(f.tanh(x)), "X")
activation("exp", f.exp, lambda d, out: d * out, "Out")
activation("log", f.log, lambda d, x: d / x, "X")
activation("log2", f.log2, lambda d, x: d / (x * math.log(2)), "X")
activation("log10", f.log10, lambda d, x: d / (x * math.log(10)), "X")
activation("log1p", f.log1p, lambda d, x: d / (1 + x), "X")
activation("sqrt", f.sqrt, lambda d, out: 0.5 * d / out, "Out")
activation("rsqrt", lambda x: f.reciprocal(f.sqrt(x)), lambda d, out: -0.5 * d * out * f.square(out), "Out")
activation("square", f.square, lambda d, x: 2 * d * x, "X")
activation("reciprocal", f.reciprocal, lambda d, out: -d * f.square(out), "Out")
activation("abs", abs, lambda d, x: d * f.sign(x), "X")
activation("sign", f.sign, lambda d, x: 0, "X")
activation("floor", f.floor, lambda d, x: 0, "X")
activation("ceil", f.ceil, lambda d, x: 0, "X")
# Halves go away from zero, as in C.
activation("round", lambda x: f.trunc(x) + f.trunc(2 * (x - f.trunc(x))), lambda d, x: 0, "X")
activation("sin", f.sin, lambda d, x: d * f.cos(x), "X")
activation("cos", f.cos, lambda d, x: -d * f.sin(x), "X")
activation("tan", f.tan, lambda d, out: d * (1 + f.square(out)), "Out")
activation("asin", f.arcsin, lambda d, x: d / f.sqrt(1 - f.square(x)), "X")
activation("acos", f.arccos, lambda d, x: -d / f.sqrt(1 - f.square(x)), "X")
activation("atan", f.arctan, lambda d, x: d / (1 + f.square(x)), "X")
activation("sinh", f.sinh, lambda d, x: d * f.cosh(x), "X")
activation("cosh", f.cosh, lambda d, x: d * f.sinh(x), "X")
activation("erf", f.erf, lambda d, x: d * (2 / math.sqrt(math.pi)) * f.exp(-f.square(x)), "X")
activation("softsign", lambda x: x / (1 + abs(x)), lambda d, x: d / f.square(1 + abs(x)), "X")
activation("relu6", lambda x, top: f.clipped(x, 0, top), lambda d, out, top: d * (out > 0) * (out < top), "Out",
           threshold=6.0)
activation("brelu", lambda x, low, top: f.clipped(x, low, top),
           lambda d, out, low, top: d * (out > low) * (out < top), "Out", t_min=0.0, t_max=24.0)
activation("leaky_relu", lambda x, alpha: f.maximum(x, 0) + alpha * f.minimum(x, 0),
           lambda d, x, alpha: d * ((x > 0) + alpha * (x <= 0)), "X", alpha=0.02)
activation("elu", lambda x, alpha: f.maximum(x, 0) + alpha * f.expm1(f.minimum(x, 0)),
           lambda d, x, alpha: d * ((x > 0) + alpha * (x <= 0) * f.exp(f.minimum(x, 0))), "X", alpha=1.0)
activation("selu", lambda x, scale, alpha: scale * (f.maximum(x, 0) + alpha * f.expm1(f.minimum(x, 0))),
           lambda d, out, scale, alpha: d * (scale * (out > 0) + (out <= 0) * (out + scale * alpha)), "Out",
           scale=1.0507009873554805, alpha=1.6732632423543772)
activation("hard_sigmoid", lambda x, slope, offset: f.clipped(slope * x + offset, 0, 1),
           lambda d, out, slope, offset: slope * d * (out > 0) * (out < 1), "Out", slope=0.2, offset=0.5)
activation("stanh", lambda x, a, b: b * f.tanh(a * x), lambda d, out, a, b: d * a * (b - f.square(out) / b), "Out",
           scale_a=0.67, scale_b=1.7159)
activation("softshrink", lambda x, limit: f.maximum(x - limit, 0) + f.minimum(x + limit, 0),
           lambda d, out, limit: d * f.differs(out, 0), "Out", **{"lambda": 0.5})
activation("hard_shrink", lambda x, limit: x * (abs(x) > limit), lambda d, x, limit: d * (abs(x) > limit), "X",
           threshold=0.5)
activation("thresholded_relu", lambda x, limit: x * (x > limit), lambda d, x, limit: d * (x > limit), "X",
           threshold=1.0)
activation("soft_relu", lambda x, top: f.log1p(f.exp(f.clipped(x, -top, top))),
           lambda d, x, top: d * (abs(x) < top) * f.sigmoid(x), "X", threshold=40.0)


def swish(x, beta=1.0):
    """x times the sigmoid of beta x."""
    return x * f.sigmoid(beta * x)


def swish_backward(d, x, beta=1.0):
    """By the product rule."""
    gate = f.sigmoid(beta * x)
    return d * gate * (1 + beta * x * (1 - gate))


activation("swish", swish, swish_backward, "X", beta=1.0)
activation("silu", swish, swish_backward, "X")


def softplus(x, beta, threshold):
    """log(1 + e^(beta x)) / beta; x itself where beta x is above the threshold."""
    linear = beta * x > threshold
    curved = (f.maximum(beta * x, 0) + f.log1p(f.exp(-abs(beta * x)))) / beta
    return linear * x + (1 - linear) * curved


def softplus_backward(d, x, beta, threshold):
    """The sigmoid, or 1 above the threshold."""
    return d * f.maximum(beta * x > threshold, f.sigmoid(beta * x))


activation("softplus", softplus, softplus_backward, "X", beta=1.0, threshold=20.0)


def mish(x, threshold):
    """x times tanh of its softplus."""
    return x * f.tanh(softplus(x, 1.0, threshold))


def mish_backward(d, x, threshold):
    """By the product rule."""
    bend = f.tanh(softplus(x, 1.0, threshold))
    slope = f.maximum(x > threshold, f.sigmoid(x))
    return d * (bend + x * slope * (1 - f.square(bend)))


activation("mish", mish, mish_backward, "X", threshold=20.0)


def hard_swish(x, threshold, scale, offset):
    """x times a ramp."""
    return x * f.clipped(x + offset, 0, threshold) / scale


def hard_swish_backward(d, x, threshold, scale, offset):
    """The ramp, and x where the ramp rises."""
    shifted = x + offset
    return d * (f.clipped(shifted, 0, threshold) + x * (shifted > 0) * (shifted < threshold)) / scale


activation("hard_swish", hard_swish, hard_swish_backward, "X", threshold=6.0, scale=6.0, offset=3.0)

ROOT_HALF, ROOT_2_OVER_PI, CUBIC = math.sqrt(0.5), math.sqrt(2 / math.pi), 0.044715


def gelu(x, approximate):
    """x times the normal distribution function of x, or what a tanh makes of that."""
    if approximate:
        return 0.5 * x * (1 + f.tanh(ROOT_2_OVER_PI * x * (1 + CUBIC * f.square(x))))
    return 0.5 * x * (1 + f.erf(ROOT_HALF * x))


def gelu_backward(d, x, approximate):
    """The distribution function, and x times its density."""
    if approximate:
        bend = f.tanh(ROOT_2_OVER_PI * x * (1 + CUBIC * f.square(x)))
        slope = ROOT_2_OVER_PI * (1 + 3 * CUBIC * f.square(x)) * (1 - f.square(bend))
        return 0.5 * d * (1 + bend + x * slope)
    return d * (0.5 * (1 + f.erf(ROOT_HALF * x))
                + x * f.exp(-0.5 * f.square(x)) * (0.5 * ROOT_2_OVER_PI))


activation("gelu", gelu, gelu_backward, "X", approximate=False)


CHEAP_POWERS = {0: lambda x: 1, 0.5: f.sqrt, 1: lambda x: x, 2: f.square}


def power(x, factor):
    """x to a power; the common ones by what is cheaper."""
    factor = int(factor) if factor == int(factor) else factor  # integers to whole powers stay integers
    return CHEAP_POWERS[factor](x) if factor in CHEAP_POWERS else f.power(x, factor)


def power_backward(d, x, factor):
    """The next lower power; nothing where the output is constant."""
    return 0 if factor == 0 else factor * d * power(x, factor - 1)


activation("pow", power, power_backward, "X", factor=1.0)


@op("prelu", "X Alpha", attrs={"mode": "all"}, grad_reads="X Alpha")
class PRelu:
    """x above 0, alpha x below; alpha is one number, one per channel, or one per element of a sample."""

    def infer(k):
        if k.attr("mode") not in ("all", "channel", "element"):
            k.fail(f"mode: expected 'all', 'channel' or 'element', got {k.attr('mode')!r}")
        k.set("Out", k.shape("X"))

    def run(k):
        """The part below zero times alpha, plus the part above."""
        x, alpha, out, xp = k["X"], spread_alpha(k), k["Out"], k.xp
        above = k.scratch(x.shape, x.dtype)

        def run():
            xp.maximum(x, 0, out=above)
            xp.minimum(x, 0, out=out)
            xp.multiply(out, alpha, out=out)
            xp.add(out, above, out=out)
        return run

    def grad(k):
        """X's gradient is 1 or alpha times the output's, alpha's the sum of it times x below 0."""
        x, alpha, dout, dx, xp = k["X"], spread_alpha(k), k["Out@GRAD"], k["X@GRAD"], k.xp
        term, write = k.scratch(x.shape, x.dtype), reducer(k, "Alpha@GRAD", x.shape, alpha.shape)

        def run():
            if dx is not None:
                xp.greater(x, 0, out=term)
                xp.multiply(xp.subtract(1, term, out=dx), alpha, out=dx)
                xp.multiply(xp.add(dx, term, out=dx), dout, out=dx)
            if write is not None:
                xp.minimum(x, 0, out=term)
                xp.multiply(term, dout, out=term)
                write(term)
        return run


def spread_alpha(k):
    """alpha with as many dimensions as X."""
    x, alpha, mode = k["X"], k["Alpha"], k.attr("mode")
    if mode == "channel":
        return alpha.reshape((1, -1) + (1,) * (x.ndim - 2))
    return alpha.reshape((1,) * x.ndim if mode == "all" else (1,) + tuple(x.shape[1:]))
