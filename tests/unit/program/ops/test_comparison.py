"""Ops of program/ops/comparison.py, each against Python's own comparison of two numbers."""

import math
import operator

import numpy as np

from tests.unit.program.ops.checking import Case, checks

rng = np.random.default_rng(1)


def pairwise(function):
    """Expected output: the function of every pair of numbers, as bool."""
    def expect(inputs, attrs):
        x, y = inputs["X"], inputs["Y"]
        if attrs.get("axis", -1) >= 0:
            y = y.reshape(y.shape + (1,) * (x.ndim - attrs["axis"] - y.ndim))
        x, y = np.broadcast_arrays(x, y)
        return {"Out": np.array([bool(function(a, b)) for a, b in zip(x.flat, y.flat)]).reshape(x.shape)}
    return expect


def single(function):
    return lambda inputs, attrs: {"Out": np.vectorize(function, otypes=[bool])(inputs["X"])}


def answer(value):
    return {"Out": np.array([value])}


COMPARISONS = {"less_than": operator.lt, "less_equal": operator.le, "greater_than": operator.gt,
               "greater_equal": operator.ge, "equal": operator.eq, "not_equal": operator.ne}
LOGIC = {"logical_and": lambda a, b: a and b, "logical_or": lambda a, b: a or b,
         "logical_xor": lambda a, b: a != b}
SHAPES = [((2, 3), (2, 3), -1), ((2, 3), (3,), -1), ((2, 3, 2), (3,), 1), ((4,), (1,), -1)]

CASES = [Case(name, {"X": rng.integers(0, 3, x).astype(kind), "Y": rng.integers(0, 3, y).astype(kind)},
              {"axis": axis}, pairwise(function), note=f"{kind}{x}{y}")
         for name, function in COMPARISONS.items() for x, y, axis in SHAPES for kind in ("float32", "int64")]
CASES += [Case(name, {"X": rng.random(x) > 0.5, "Y": rng.random(y) > 0.5}, {"axis": axis}, pairwise(function))
          for name, function in LOGIC.items() for x, y, axis in SHAPES]
ODD = np.array([[1.0, np.nan, np.inf], [-np.inf, 0.0, -2.0]])
PLAIN = np.array([1.0, -3.0])
CASES += [Case("logical_not", {"X": rng.random((2, 3)) > 0.5}, expect=single(operator.not_)),
          Case("isnan_v2", {"X": ODD}, expect=single(math.isnan)),
          Case("isinf_v2", {"X": ODD}, expect=single(math.isinf)),
          Case("isfinite_v2", {"X": ODD}, expect=single(math.isfinite))]
CASES += [Case(name, {"X": x}, expect=answer(want), note=str(want)) for name, x, want in [
    ("isnan", ODD, True), ("isnan", ODD[1], False), ("isinf", ODD, True), ("isinf", PLAIN, False),
    ("isfinite", ODD, False), ("isfinite", PLAIN, True),
    ("is_empty", PLAIN, False), ("is_empty", np.zeros((0, 3)), True)]]
CASES += [Case("equal_all", {"X": PLAIN, "Y": y}, expect=answer(want)) for y, want in [
    (PLAIN, True), (PLAIN + [0, 1], False), (PLAIN[:1], False)]]
CASES += [Case("allclose", {"Input": one, "Other": other}, attrs, answer(np.allclose(one, other, **attrs)), note=str(i))
          for i, (one, other, attrs) in enumerate([
              (PLAIN, PLAIN * (1 + 1e-6), {}), (PLAIN, PLAIN * 1.1, {}), (PLAIN, PLAIN * 1.1, {"rtol": 0.2}),
              (ODD, ODD, {}),
              (ODD, ODD, {"equal_nan": True}), (PLAIN, PLAIN + 0.5, {"rtol": 0.0, "atol": 0.6}),
              (PLAIN, PLAIN + np.inf, {})])]

test_forward, test_device = checks(CASES, widen=(False,))
