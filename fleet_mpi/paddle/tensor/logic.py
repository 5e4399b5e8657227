"""``paddle.tensor.logic``: questions, answered with bools."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers import comparison as _comparison
from fleet_mpi.program.layers import reduction as _reduction
from fleet_mpi.program.layers.comparison import equal_all, logical_and, logical_not, logical_or, logical_xor


def equal(x, y, name=None):
    """x == y."""
    return _comparison.equal(x, y)


def not_equal(x, y, name=None):
    """x != y."""
    return _comparison.not_equal(x, y)


def less_than(x, y, name=None):
    """x < y."""
    return _comparison.less_than(x, y)


def less_equal(x, y, name=None):
    """x <= y."""
    return _comparison.less_equal(x, y)


def greater_than(x, y, name=None):
    """x > y."""
    return _comparison.greater_than(x, y)


def greater_equal(x, y, name=None):
    """x >= y."""
    return _comparison.greater_equal(x, y)


def is_empty(x, name=None):
    """Whether x has no element."""
    return _comparison.is_empty(x)


def all(x, axis=None, keepdim=False, name=None):
    """Whether all are true, over some dimensions or all."""
    return _reduction.reduce_all(x, axis, keepdim, name)


def any(x, axis=None, keepdim=False, name=None):
    """Whether one is true, over some dimensions or all."""
    return _reduction.reduce_any(x, axis, keepdim, name)


__getattr__ = _missing_name("paddle.tensor.logic", globals())
