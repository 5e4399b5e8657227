"""``paddle.tensor.math``: arithmetic, with the argument lists of 2.x."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers import math as _math
from fleet_mpi.program.layers import reduction as _reduction
from fleet_mpi.program.layers.activation import (abs, acos, asin, atan, ceil, cos, cosh, erf, exp, floor, log,
                                                 reciprocal, round, rsqrt, sign, sin, sinh, sqrt, square, tan, tanh)
from fleet_mpi.program.layers.comparison import each_isfinite as isfinite
from fleet_mpi.program.layers.comparison import each_isinf as isinf
from fleet_mpi.program.layers.comparison import each_isnan as isnan
from fleet_mpi.program.layers.manipulation import reshape as _reshape
from fleet_mpi.program.layers.math import scale
from fleet_mpi.program.layers.reduction import mean as _mean

_LOWEST, _HIGHEST = -3.4028234663852886e+38, 3.4028234663852886e+38


def add(x, y, name=None):
    """x + y."""
    return _math.elementwise_add(x, y, name=name)


def subtract(x, y, name=None):
    """x - y."""
    return _math.elementwise_sub(x, y, name=name)


def multiply(x, y, name=None):
    """x * y."""
    return _math.elementwise_mul(x, y, name=name)


def divide(x, y, name=None):
    """x / y."""
    return _math.elementwise_div(x, y, name=name)


def floor_divide(x, y, name=None):
    """x / y rounded down."""
    return _math.elementwise_floordiv(x, y, name=name)


def mod(x, y, name=None):
    """The remainder of x / y."""
    return _math.elementwise_mod(x, y, name=name)


remainder = mod


def maximum(x, y, name=None):
    """The larger of x and y."""
    return _math.elementwise_max(x, y, name=name)


def minimum(x, y, name=None):
    """The smaller of x and y."""
    return _math.elementwise_min(x, y, name=name)


def pow(x, y, name=None):
    """x to the power of a number or a variable."""
    return _math.elementwise_pow(x, y, name=name) if hasattr(y, "block") else _math.pow(x, y, name)


def mean(x, axis=None, keepdim=False, name=None):
    """The mean over some dimensions, or over all."""
    return _mean(x, name) if axis is None and not keepdim else _reduction.reduce_mean(x, axis, keepdim, name)


def sum(x, axis=None, dtype=None, keepdim=False, name=None):
    """The sum over some dimensions, or over all; in another element type where one is given."""
    return _reduction.reduce_sum(x if dtype is None else _math.cast(x, dtype), axis, keepdim, name)


def max(x, axis=None, keepdim=False, name=None):
    """The largest over some dimensions, or over all."""
    return _reduction.reduce_max(x, axis, keepdim, name)


def min(x, axis=None, keepdim=False, name=None):
    """The smallest over some dimensions, or over all."""
    return _reduction.reduce_min(x, axis, keepdim, name)


def prod(x, axis=None, keepdim=False, dtype=None, name=None):
    """The product over some dimensions, or over all."""
    return _reduction.reduce_prod(x if dtype is None else _math.cast(x, dtype), axis, keepdim, name)


def clip(x, min=None, max=None, name=None):
    """x held between two bounds, each of which may be missing."""
    return _math.clip(x, _LOWEST if min is None else min, _HIGHEST if max is None else max, name)


def cumsum(x, axis=None, dtype=None, name=None):
    """Running sums along an axis, or over all elements in a row."""
    x = x if dtype is None else _math.cast(x, dtype)
    return _math.cumsum(_reshape(x, [-1]), 0) if axis is None else _math.cumsum(x, axis)


def increment(x, value=1.0, name=None):
    """x + value, written back to x."""
    return _math.increment(x, value)


def add_n(inputs, name=None):
    """The sum of a list of variables."""
    return _math.sums(inputs)


__getattr__ = _missing_name("paddle.tensor.math", globals())
