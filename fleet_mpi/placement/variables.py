"""What may be placed: the arguments of ``place``, checked with a sentence for each that cannot mean anything."""

import itertools
import math
import operator

import numpy as np

from fleet_mpi.errors import UsageError
from fleet_mpi.placement.shard import Variable

# More elements than any machine has, few enough that sums of two such numbers stay within 64 bits.
MOST_ELEMENTS = 1 << 61


def checked_variables(given):
    """The variables as a tuple of Variable; UsageError for equal names and impossible shapes."""
    given = tuple(given)
    variables = given if _need_no_change(given) else tuple(map(_checked, given))
    if len({variable.name for variable in variables}) != len(variables):
        seen = set()
        twice = next(name for name, _, _ in variables if name in seen or seen.add(name))
        raise UsageError(f"placement: two variables are called {twice!r}; a name can be placed once")
    return variables


def _need_no_change(given):
    """Whether all are Variables that ``_checked`` would leave as they are: a million are looked at in half a second."""
    if not set(map(type, given)) <= {Variable}:
        return False
    shapes = [variable.shape for variable in given]
    return (set(map(type, shapes)) <= {tuple} and {type(variable.name) for variable in given} <= {str}
            and set(map(type, itertools.chain.from_iterable(shapes))) <= {int}
            and min(itertools.chain.from_iterable(shapes), default=0) >= 0
            and max(map(math.prod, shapes), default=0) <= MOST_ELEMENTS)


def _checked(given):
    try:
        name, shape, dtype = given if len(given) == 3 else (*given, "float32")
        shape = tuple(map(operator.index, shape))
    except (TypeError, ValueError):
        raise UsageError(f"placement: expected a variable as (name, shape) or (name, shape, dtype), "
                         f"got {given!r}") from None
    if not isinstance(name, str):
        raise UsageError(f"placement: expected the name of a variable first, got {name!r} in {given!r}")
    if shape and min(shape) < 0:
        raise UsageError(f"placement: variable {name!r} has shape {list(shape)}; what servers keep needs a size "
                         f"in every dimension, not {min(shape)}")
    if math.prod(shape) > MOST_ELEMENTS:
        raise UsageError(f"placement: variable {name!r} has shape {list(shape)}: more than 2**61 elements")
    return Variable(name, shape, dtype)


def whole_number(what, value, least):
    """The value as an int; UsageError unless it is a whole number of at least ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or isinstance(value, bool):
        raise UsageError(f"placement: {what} must be a whole number of at least {least}, got {value!r}")
    return number


def bytes_per_element(variables):
    """The element size of every variable, as an int64 array."""
    known = {dtype: itemsize(dtype) for dtype in {variable.dtype for variable in variables}}
    return np.fromiter((known[dtype] for _, _, dtype in variables), np.int64, len(variables))


def itemsize(dtype):
    """Bytes of one element of a dtype."""
    try:
        return np.dtype(dtype).itemsize
    except TypeError:
        raise UsageError(f"placement: dtype {dtype!r} is not one that numpy knows, e.g. 'float32'") from None
