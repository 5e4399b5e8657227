"""Formula: numbers as functions of other numbers, built op by op, then made into Python functions that compute them.

A value is a constant, a number that is found, a function of values, or a choice among values. Knows no ops.
"""

import math
import operator
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np


def _power(base, exponent):
    return math.inf if base == 0 and exponent < 0 else base ** exponent


def _both(one, other):
    return one and other


HOST = SimpleNamespace(floor=math.floor, ceil=math.ceil, exp=math.exp, cos=math.cos, power=_power, minimum=min,
                       maximum=max, logical_not=operator.not_, logical_and=_both)


def number_module(xp):
    """Where the functions of numbers are: Python's on the host, the array module's on a device."""
    return HOST if xp is np else xp


class Constant(NamedTuple):
    """A number that is known."""

    value: float


class Found(NamedTuple):
    """The number that a variable holds; with ``late``, as this very formula left it."""

    name: str
    late: bool = False


class Applied(NamedTuple):
    """A function of one value or two."""

    function: object
    parts: tuple


class Chosen(NamedTuple):
    """The value of the first test that holds, else another one."""

    cases: tuple
    otherwise: object


class Formula:
    """What the variables of a schedule hold, as values; ``found`` and ``rates`` are {name: array of one number}."""

    def __init__(self, found, rates, xp, values=None):
        self.found, self.rates, self.xp = found, rates, xp
        self.values = values if values is not None else {}
        self.cells = {}  # {name: [its number]} of those that are read at the start of every step

    def constant(self, name, value):
        """A variable holds a number."""
        self.values[name] = Constant(value)

    def apply(self, name, function, parts):
        """A variable holds a function of others, or, without a function, what another one holds."""
        values = tuple(map(self._read, parts))
        self.values[name] = Applied(function, values) if function is not None else values[0]

    def _read(self, name):
        if name in self.values and name in self.rates:
            return Found(name, late=True)
        return self.values.get(name, Found(name))

    def choose(self, condition, names, enter):
        """If a variable is true these hold what ``enter(formula)`` makes of them, else what they held."""
        branch = Formula(self.found, self.rates, self.xp, dict(self.values))
        enter(branch)
        for name in names:
            self.values[name] = _chosen(self._read(condition), branch.values[name], self.values.get(name, Found(name)))

    def number(self, array):
        """The number in an array: Python's on the host."""
        return float(array.item()) if self.xp is np else array.astype("float64")

    def function(self, name):
        """The Python function, without arguments, that gives a variable's number."""
        return self._function(self.values[name])

    def _function(self, value):
        if isinstance(value, Constant):
            return lambda number=value.value: number
        if isinstance(value, Found):
            return self._reader(value)
        return self._choice(value) if isinstance(value, Chosen) else self._application(value)

    def _reader(self, value):
        if value.late:
            array = self.rates[value.name]
            return lambda: self.number(array)
        cell = self.cells.setdefault(value.name, [None])
        return lambda: cell[0]

    def _application(self, value):
        function, parts = value.function, [self._function(part) for part in value.parts]
        if len(parts) == 1:
            only, = parts
            return lambda: function(only())
        (one, other), (left, right) = parts, value.parts
        if isinstance(right, Constant):
            return lambda number=right.value: function(one(), number)
        if isinstance(left, Constant):
            return lambda number=left.value: function(number, other())
        return lambda: function(one(), other())

    def _choice(self, value):
        cases = [(self._function(test), self._function(then)) for test, then in value.cases]
        otherwise = self._function(value.otherwise)
        if self.xp is not np:
            return _where(self.xp.where, cases, otherwise)

        def choice():
            for test, then in cases:
                if test():
                    return then()
            return otherwise()
        return choice


def _where(where, cases, otherwise):
    """The choice among arrays: all are computed."""
    def choice():
        value = otherwise()
        for test, then in reversed(cases):
            value = where(test(), then(), value)
        return value
    return choice


def _chosen(condition, new, old):
    """``new`` where the condition holds, else ``old``; the cases of one Switch become one choice."""
    known = _literals(condition)
    tests = {(test, False) for test, _ in old.cases} if isinstance(old, Chosen) else None
    if tests is not None and tests <= known:
        left = known - tests
        if not left:
            return Chosen(old.cases, new)
        if len(left) == 1 and next(iter(left))[1]:
            return Chosen((*old.cases, (next(iter(left))[0], new)), old.otherwise)
    return Chosen(((condition, new),), old)


def _literals(value, truth=True):
    """What must be true and what false for a condition to hold: {(value, truth)}."""
    name = getattr(value.function, "__name__", "") if isinstance(value, Applied) else ""
    if name in ("not_", "logical_not"):
        return _literals(value.parts[0], not truth)
    if truth and name in ("_both", "logical_and"):
        return _literals(value.parts[0]) | _literals(value.parts[1])
    return {(value, truth)}
