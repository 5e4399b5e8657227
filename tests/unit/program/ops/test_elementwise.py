"""Ops of program/ops/elementwise.py."""

import numpy as np
import pytest
from checking import Case, check_device, check_forward, check_gradient, check_shapes_at_build, ids

rng = np.random.default_rng(0)


def away_from_zero(*shape):
    return rng.uniform(0.5, 2.0, shape)


def stretched(function):
    def expect(inputs, attrs):
        x, y = inputs["X"], inputs["Y"]
        axis = attrs.get("axis", -1)
        if axis >= 0 and y.ndim < x.ndim:
            y = y.reshape(y.shape + (1,) * (x.ndim - axis - y.ndim))
        return {"Out": function(x, y)}
    return expect


SHAPES = [((2, 3), (2, 3), -1), ((2, 3), (3,), -1), ((2, 3, 4, 2), (3, 4), 1), ((3, 2), (3,), 0),
          ((2, 1), (1, 3), -1), ((3,), (2, 3), -1), ((2, 3), (1,), -1)]
FUNCTIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
             "max": np.maximum, "min": np.minimum, "pow": np.power}

CASES = [Case(f"elementwise_{name}", {"X": away_from_zero(*x), "Y": away_from_zero(*y)}, {"axis": axis},
              stretched(function), grads="X Y", note=f"{x}{y}axis{axis}")
         for name, function in FUNCTIONS.items() for x, y, axis in SHAPES]
CASES += [Case(f"elementwise_{name}", {"X": np.array([-7, 7, 8]), "Y": np.array([3, -3, 4])}, {},
               stretched(function))
          for name, function in (("mod", np.mod), ("floordiv", np.floor_divide))]


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_forward_equals_numpy(case):
    check_forward(case)
    check_shapes_at_build(case)


@pytest.mark.parametrize("case", [c for c in CASES if c.grads], ids=ids([c for c in CASES if c.grads]))
def test_gradient_equals_differences(case):
    check_gradient(case)


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_device_arrays_stay_on_the_device(case):
    check_device(case)
