"""Ops of program/ops/elementwise.py."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Case, check_forward, check_gradient, check_shapes_at_build, checks

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
          for name, function in (("mod", np.mod), ("floordiv", np.floor_divide),
                                 ("div", np.vectorize(lambda x, y: int(x / y))))]

test_forward, test_gradient, test_device = checks(CASES)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_two_shapes_stretch_as_numpy_does(data):
    full = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))

    def some():
        chosen = [data.draw(st.sampled_from([1, n])) for n in full]
        return tuple(chosen[data.draw(st.integers(0, len(chosen) - 1)):])
    name = data.draw(st.sampled_from(sorted(FUNCTIONS)))
    case = Case(f"elementwise_{name}", {"X": away_from_zero(*some()), "Y": away_from_zero(*some())}, {},
                stretched(FUNCTIONS[name]), grads="X Y")
    check_forward(case)
    check_shapes_at_build(case)
    check_gradient(case)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_y_lies_along_x_from_the_axis_on(data):
    x = tuple(data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)))
    axis = data.draw(st.integers(0, len(x) - 1))
    y = x[axis:data.draw(st.integers(axis + 1, len(x)))]
    name = data.draw(st.sampled_from(sorted(FUNCTIONS)))

    def expect(inputs, attrs):
        out = np.empty(x)
        for at in np.ndindex(x):
            out[at] = FUNCTIONS[name](inputs["X"][at], inputs["Y"][at[axis:axis + len(y)]])
        return {"Out": out}
    case = Case(f"elementwise_{name}", {"X": away_from_zero(*x), "Y": away_from_zero(*y)}, {"axis": axis}, expect,
                grads="X Y")
    check_forward(case)
    check_gradient(case)


@pytest.mark.parametrize("x, y, axis, match", [
    (np.ones((2, 3)), np.ones((4,)), -1, "cannot be stretched"),
    (np.ones((2, 3)), np.ones((3, 3)), 1, "axis 1: Y .* does not fit into X"),
    (np.ones(2), np.ones(2, np.int64), -1, "X is float64 but Y is int64: cast one of them")])
def test_what_does_not_fit_is_named(x, y, axis, match):
    with pytest.raises(ProgramError, match=match):
        check_forward(Case("elementwise_add", {"X": x, "Y": y}, {"axis": axis}, {"Out": x}))
