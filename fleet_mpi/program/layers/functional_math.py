"""Arithmetic and questions with the argument lists of 2.x (``paddle.tensor``): ``x``, ``axis``, ``keepdim``,
``name``."""

import math as numbers

from fleet_mpi.program.build.variable_arguments import listed
from fleet_mpi.program.layers import activation, comparison, manipulation, math, reduction, tensor, tensor_products

_LOWEST, _HIGHEST = -3.4028234663852886e+38, 3.4028234663852886e+38


def add(x, y, name=None):
    """x + y."""
    return math.elementwise_add(x, y, name=name)


def subtract(x, y, name=None):
    """x - y."""
    return math.elementwise_sub(x, y, name=name)


def multiply(x, y, name=None):
    """x * y."""
    return math.elementwise_mul(x, y, name=name)


def divide(x, y, name=None):
    """x / y."""
    return math.elementwise_div(x, y, name=name)


def floor_divide(x, y, name=None):
    """x / y rounded down."""
    return math.elementwise_floordiv(x, y, name=name)


def mod(x, y, name=None):
    """The remainder of x / y."""
    return math.elementwise_mod(x, y, name=name)


remainder = mod


def maximum(x, y, name=None):
    """The larger of x and y."""
    return math.elementwise_max(x, y, name=name)


def minimum(x, y, name=None):
    """The smaller of x and y."""
    return math.elementwise_min(x, y, name=name)


def pow(x, y, name=None):
    """x to the power of a number or a variable."""
    return math.elementwise_pow(x, y, name=name) if hasattr(y, "block") else math.pow(x, y, name)


def mean(x, axis=None, keepdim=False, name=None):
    """The mean over some dimensions, or over all."""
    return reduction.mean(x, name) if axis is None and not keepdim else reduction.reduce_mean(x, axis, keepdim, name)


def sum(x, axis=None, dtype=None, keepdim=False, name=None):
    """The sum over some dimensions, or over all; in another element type where one is given."""
    return reduction.reduce_sum(x if dtype is None else math.cast(x, dtype), axis, keepdim, name)


def max(x, axis=None, keepdim=False, name=None):
    """The largest over some dimensions, or over all."""
    return reduction.reduce_max(x, axis, keepdim, name)


def min(x, axis=None, keepdim=False, name=None):
    """The smallest over some dimensions, or over all."""
    return reduction.reduce_min(x, axis, keepdim, name)


def prod(x, axis=None, keepdim=False, dtype=None, name=None):
    """The product over some dimensions, or over all."""
    return reduction.reduce_prod(x if dtype is None else math.cast(x, dtype), axis, keepdim, name)


def clip(x, min=None, max=None, name=None):
    """x held between two bounds, each of which may be missing."""
    return math.clip(x, _LOWEST if min is None else min, _HIGHEST if max is None else max, name)


def cumsum(x, axis=None, dtype=None, name=None):
    """Running sums along an axis, or over all elements in a row."""
    x = x if dtype is None else math.cast(x, dtype)
    return math.cumsum(manipulation.reshape(x, [-1]), 0) if axis is None else math.cumsum(x, axis)


def increment(x, value=1.0, name=None):
    """x + value, written back to x."""
    return math.increment(x, value)


def add_n(inputs, name=None):
    """The sum of a list of variables."""
    return math.sums(inputs)


def equal(x, y, name=None):
    """x == y."""
    return comparison.equal(x, y)


def not_equal(x, y, name=None):
    """x != y."""
    return comparison.not_equal(x, y)


def less_than(x, y, name=None):
    """x < y."""
    return comparison.less_than(x, y)


def less_equal(x, y, name=None):
    """x <= y."""
    return comparison.less_equal(x, y)


def greater_than(x, y, name=None):
    """x > y."""
    return comparison.greater_than(x, y)


def greater_equal(x, y, name=None):
    """x >= y."""
    return comparison.greater_equal(x, y)


def is_empty(x, name=None):
    """Whether x has no element."""
    return comparison.is_empty(x)


def all(x, axis=None, keepdim=False, name=None):
    """Whether all are true, over some dimensions or all."""
    return reduction.reduce_all(x, axis, keepdim, name)


def any(x, axis=None, keepdim=False, name=None):
    """Whether one is true, over some dimensions or all."""
    return reduction.reduce_any(x, axis, keepdim, name)


def floor_mod(x, y, name=None):
    """The remainder of x / y."""
    return mod(x, y, name)


def addmm(input, x, y, beta=1.0, alpha=1.0, name=None):
    """beta input + alpha x y."""
    return tensor_products.addmm(input, x, y, alpha, beta, name)


def var(x, axis=None, unbiased=True, keepdim=False, name=None):
    """The variance over some dimensions, or over all; ``unbiased`` divides by one less than their number."""
    squares = activation.square(x - reduction.reduce_mean(x, axis, True))
    made = reduction.reduce_mean(squares, axis, keepdim, name)
    if not unbiased:
        return made
    sizes = [x.shape[one] for one in (range(len(x.shape)) if axis is None else listed(axis))]
    if -1 in sizes:
        return made * _correction(x, made)
    count = numbers.prod(sizes)
    return math.scale(made, count / (count - 1.0)) if count > 1 else made


def std(x, axis=None, unbiased=True, keepdim=False, name=None):
    """The standard deviation over some dimensions, or over all."""
    return activation.sqrt(var(x, axis, unbiased, keepdim), name)


def _correction(x, made):
    """n / (n - 1) at run time, n being how many elements of x go into one of ``made``; 1 of one element."""
    count = math.cast(tensor.size(x), x.dtype) / math.cast(tensor.size(made), x.dtype)
    return count / maximum(count - 1.0, tensor.ones([1], x.dtype))


def logsumexp(x, axis=None, keepdim=False, name=None):
    """log of the sum of e^x over some dimensions, or over all, without overflow."""
    top = reduction.reduce_max(x, axis, True)
    top.stop_gradient = True
    total = activation.log(reduction.reduce_sum(activation.exp(x - top), axis, keepdim))
    return math.elementwise_add(total, top if keepdim else reduction.reduce_max(top, axis, False), name=name)


def norm(x, p="fro", axis=None, keepdim=False, name=None):
    """The p-norm along an axis, over two of them, or of everything; "fro" is the 2-norm."""
    p, axes = 2.0 if p == "fro" else p, list(axis) if isinstance(axis, (list, tuple)) else [axis]
    if len(axes) == 1:
        return math.p_norm(x, p, axes[0], keepdim, name)
    sizes = activation.abs(x)
    if numbers.isinf(p):
        return (reduction.reduce_max if p > 0 else reduction.reduce_min)(sizes, axes, keepdim, name)
    if p == 0:
        return reduction.reduce_sum(math.cast(comparison.not_equal(x, tensor.zeros_like(x)), x.dtype), axes, keepdim,
                                    name)
    total = reduction.reduce_sum(activation.square(x) if p == 2 else math.pow(sizes, p), axes, keepdim)
    return activation.sqrt(total, name) if p == 2 else math.pow(total, 1.0 / p, name)


def mm(input, mat2, name=None):
    """The product of two matrices."""
    return math.matmul_v2(input, mat2, name=name)


def _multiply_with_axis(x, y, axis=-1, name=None):
    return math.elementwise_mul(x, y, axis, name=name)
