"""What may be placed: the arguments of ``place``, checked with a sentence for each that cannot mean anything."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.errors import UsageError
from fleet_mpi.placement.shard import Variable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TypeGuard

# A Variable, (name, shape) or (name, shape, dtype).
VariableLike = tuple[str, Sequence[int]] | tuple[str, Sequence[int], str]
# More elements than any machine has, few enough that sums of two such numbers stay within 64 bits.
MOST_ELEMENTS = 1 << 61


def checked_variables(given: Iterable[VariableLike]) -> tuple[Variable, ...]:
    """The variables as a tuple of Variable; UsageError for equal names and impossible shapes."""
    given = tuple(given)
    variables = given if _need_no_change(given) else tuple(map(_checked, given))
    if len({variable.name for variable in variables}) != len(variables):
        twice = first_repeated(variable.name for variable in variables)
        raise UsageError(f"placement: two variables are called {twice!r}; a name can be placed once")
    return variables


def first_repeated(names: Iterable[str]) -> str:
    """The first of some names that occurred before; one must."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    raise ValueError("all names are different")


def _need_no_change(given: tuple[Any, ...]) -> TypeGuard[tuple[Variable, ...]]:
    """Whether all are Variables that ``_checked`` would leave as they are: a million are looked at in half a second."""
    if not set(map(type, given)) <= {Variable}:
        return False
    shapes = [variable.shape for variable in given]
    return (set(map(type, shapes)) <= {tuple} and {type(variable.name) for variable in given} <= {str}
            and set(map(type, itertools.chain.from_iterable(shapes))) <= {int}
            and min(itertools.chain.from_iterable(shapes), default=0) >= 0
            and max(map(math.prod, shapes), default=0) <= MOST_ELEMENTS)


def _checked(given: VariableLike) -> Variable:
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


def whole_number(what: str, value: Any, least: int) -> int:
    """The value as an int; UsageError unless it is a whole number of at least ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or isinstance(value, bool):
        raise UsageError(f"placement: {what} must be a whole number of at least {least}, got {value!r}")
    return number


def bytes_per_element(variables: Sequence[Variable]) -> np.ndarray:
    """The element size of every variable, as an int64 array."""
    known = {dtype: itemsize(dtype) for dtype in {variable.dtype for variable in variables}}
    return np.fromiter((known[dtype] for _, _, dtype in variables), np.int64, len(variables))


def itemsize(dtype: str) -> int:
    """Bytes of one element of a dtype."""
    try:
        return np.dtype(dtype).itemsize
    except TypeError:
        raise UsageError(f"placement: dtype {dtype!r} is not one that numpy knows, e.g. 'float32'") from None
