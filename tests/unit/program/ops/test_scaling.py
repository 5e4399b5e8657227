"""Ops of program/ops/scaling.py, against loops over the elements."""

import math

import numpy as np
import pytest

from fleet_mpi import arrays
from fleet_mpi.errors import ProgramError
from fleet_mpi.testing import device
from tests.unit.program.ops.checking import Built, Case, StandInPlace, check_forward, checks

rng = np.random.default_rng(4)


def each(function):
    """Expected output: the function of every number and the attributes."""
    return lambda inputs, attrs: {"Out": np.array(
        [function(x, attrs) for x in inputs["X"].flat]).reshape(inputs["X"].shape)}


def scaled(x, attrs):
    scale, bias = attrs.get("scale", 1.0), attrs.get("bias", 0.0)
    return x * scale + bias if attrs.get("bias_after_scale", True) else (x + bias) * scale


def by_variable(inputs, attrs):
    return each(scaled)(inputs, {**attrs, "scale": inputs["ScaleTensor"][0]})


def normalised(inputs, attrs):
    x, axis = inputs["X"], attrs["axis"] % inputs["X"].ndim
    norm = np.zeros([1 if i == axis else n for i, n in enumerate(x.shape)])
    for at in np.ndindex(x.shape):
        norm[at[:axis] + (0,) + at[axis + 1:]] += x[at] ** 2
    norm = np.sqrt(norm + attrs["epsilon"])
    return {"Out": x / norm, "Norm": norm}


def p_norm(inputs, attrs):
    x, p = inputs["X"], attrs["porder"]
    if attrs.get("asvector"):
        lines = {(0,) * (x.ndim if attrs.get("keepdim") else 1): [abs(one) for one in x.flat]}
        shape = (1,) * x.ndim if attrs.get("keepdim") else (1,)
    else:
        axis, lines = attrs["axis"] % x.ndim, {}
        shape = x.shape[:axis] + (1,) * bool(attrs.get("keepdim")) + x.shape[axis + 1:]
        for at in np.ndindex(x.shape):
            at_out = at[:axis] + (0,) * bool(attrs.get("keepdim")) + at[axis + 1:]
            lines.setdefault(at_out or (0,), []).append(abs(x[at]))
    out = np.empty(shape or (1,))
    for at, line in lines.items():
        out[at] = (max(line) if p == math.inf else min(line) if p == -math.inf else
                   sum(one != 0 for one in line) if p == 0 else sum(one ** p for one in line) ** (1 / p))
    return {"Out": out}


def running(inputs, attrs):
    x = inputs["X"].reshape(-1) if attrs.get("flatten") else inputs["X"]
    axis = 0 if attrs.get("flatten") else attrs.get("axis", -1) % x.ndim
    out = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        for n in range(x.shape[axis]):
            ahead = n > at[axis] if attrs.get("reverse") else n < at[axis]
            if ahead or n == at[axis] and not attrs.get("exclusive"):
                out[at] += x[at[:axis] + (n,) + at[axis + 1:]]
    return {"Out": out}


def cosines(inputs, attrs):
    x, y = inputs["X"], inputs["Y"]
    length = lambda row: math.sqrt(sum(one ** 2 for one in row.flat))
    rows = [(one, y[i if len(y) > 1 else 0]) for i, one in enumerate(x)]
    return {"Out": np.array([[(one * other).sum() / length(one) / length(other)] for one, other in rows]),
            "XNorm": np.array([[length(one)] for one in x]), "YNorm": np.array([[length(one)] for one in y])}


def case(type, attrs, expect, *shape, **more):
    return Case(type, {"X": rng.normal(size=shape)}, attrs, expect, grads="X", note=f"{attrs}{shape}", **more)


CASES = [case("scale", attrs, each(scaled), *shape) for shape in [(3,), (2, 3)] for attrs in [
    {}, {"scale": 2.5}, {"bias": 1.5}, {"scale": 2.0, "bias": 1.5},
    {"scale": -2.0, "bias": 1.5, "bias_after_scale": False}]]
CASES += [Case("scale", {"X": rng.normal(size=(2, 3)), "ScaleTensor": np.array([2.5])}, attrs, by_variable, grads="X",
               note="variable") for attrs in [{}, {"bias": 0.5}, {"bias": 0.5, "bias_after_scale": False}]]
CASES += [Case("scale", {"X": np.array([3, -4])}, {"scale": 2.0, "bias": 1.0}, each(scaled), note="integers")]
CASES += [Case("increment", {"X": x}, {"step": step}, {"Out": x + step}, note=str(x.dtype))
          for x, step in [(np.array([3]), 2.0), (np.array([0.5]), -1.25)]]
CASES += [Case("cast", {"X": np.array([[0.0, 1.5], [-2.5, 3.0]])}, {"out_dtype": kind}, {"Out": np.array(want)},
               note=kind)
          for kind, want in [("int64", [[0, 1], [-2, 3]]), ("bool", [[False, True], [True, True]]),
                             ("float32", [[0, 1.5], [-2.5, 3]])]]
CASES += [Case("cast", {"X": np.array([1, 0, 3])}, {"out_dtype": "float64"}, {"Out": np.array([1.0, 0, 3])}),
          Case("cast", {"X": np.array([True, False])}, {"out_dtype": "int32"}, {"Out": np.array([1, 0])}),
          case("cast", {"out_dtype": "float64"}, lambda i, a: {"Out": i["X"]}, 2, 3)]
CASES += [case("clip", {"min": -0.41, "max": 0.52}, each(lambda x, a: min(max(x, a["min"]), a["max"])), *shape)
          for shape in [(7,), (2, 3)]]
CASES += [Case("clip", {"X": np.array([-3, 0, 4, 9], kind)}, {"min": low, "max": high}, {"Out": np.array(want, kind)},
               note=f"{kind} {low} {high}")
          for kind in ("int32", "int64")
          for low, high, want in [(1.0, 5.7, [1, 1, 4, 5]), (-3e38, 3e38, [-3, 0, 4, 9])]]
VALUES = np.array([[-0.9, 0.2], [0.7, 0.4]])
CASES += [Case("clip", {"X": VALUES, **slots}, attrs, {"Out": np.clip(VALUES, low, high)}, grads="X",
               note=f"by {' '.join(slots)}")
          for slots, attrs, low, high in [
              ({"Min": np.array([-0.5]), "Max": np.array([0.5])}, {}, -0.5, 0.5),
              ({"Max": np.array([0.5])}, {"min": -0.3}, -0.3, 0.5), ({"Min": np.array([0.3])}, {}, 0.3, None)]]
CASES += [Case("clip", {"X": np.array([1, 5, 9]), "Max": np.array([6.5])}, {"min": 2.0}, {"Out": np.array([2, 5, 6])},
               note="whole numbers by a variable")]
CASES += [case("norm", {"axis": axis, "epsilon": epsilon}, normalised, *shape)
          for shape, axis, epsilon in [((3,), 0, 1e-10), ((2, 3), 1, 0.5), ((2, 3, 2), 1, 1e-12), ((2, 3), -2, 1e-3)]]
CASES += [case("p_norm", attrs, p_norm, *shape) for shape, attrs in [
    ((2, 3), {"porder": 2.0, "axis": 1}), ((2, 3), {"porder": 3.0, "axis": 0, "keepdim": True}),
    ((3,), {"porder": 1.0, "axis": 0}), ((2, 3), {"porder": math.inf, "axis": -1}),
    ((2, 3), {"porder": -math.inf, "axis": 0}), ((2, 2), {"porder": 0.0, "axis": 0}),
    ((2, 3), {"porder": 2.0, "asvector": True}), ((2, 3), {"porder": 1.5, "asvector": True, "keepdim": True})]]
CASES += [case("cumsum", {"axis": axis, "exclusive": exclusive, "reverse": reverse}, running, *shape)
          for shape, axis in [((4,), -1), ((2, 3), 0), ((2, 3, 2), 1)] for exclusive in (False, True)
          for reverse in (False, True)]
CASES += [case("cumsum", {"flatten": True, "reverse": reverse}, running, 2, 3) for reverse in (False, True)]
CASES += [Case("minus", {"X": rng.normal(size=(2, 3)), "Y": rng.normal(size=(2, 3))},
               expect=lambda i, a: {"Out": i["X"] - i["Y"]}, grads="X Y")]
CASES += [Case("cos_sim", {"X": rng.normal(size=x), "Y": rng.normal(size=y)}, expect=cosines, grads="X Y",
               note=f"{x}{y}")
          for x, y in [((3, 4), (3, 4)), ((3, 4), (1, 4)), ((1, 2), (1, 2)), ((2, 2, 3), (2, 2, 3))]]

test_forward, test_gradient, test_device = checks(CASES)


@pytest.mark.parametrize("place, xp", [(None, np), (StandInPlace(), device)], ids=["host", "device"])
def test_a_row_gradient_is_scaled_row_by_row(place, xp):
    built = Built(Case("scale", {"X": np.ones((5, 2))}, {"scale": 3.0}, {"Out": np.ones((5, 2))}))
    built.program.global_block().var("X_0").persistable = True
    rows = arrays.Rows(xp.asarray(np.array([1, 4, 1])), xp.asarray(np.arange(6.0).reshape(3, 2)), 5)
    built.scope.var("X_0").value = rows
    found, = built.run(["Out_out_0"], place, feed={"unused": np.zeros(1)})
    np.testing.assert_array_equal(found, [[0, 0], [12, 18], [0, 0], [0, 0], [6, 9]])


@pytest.mark.parametrize("wrong, match", [
    (Case("clip", {"X": np.ones(2)}, {"min": 2.0, "max": 1.0}, {"Out": np.ones(2)}), "expected min <= max"),
    (Case("norm", {"X": np.ones((2, 2))}, {"axis": 2}, {"Out": np.ones(2), "Norm": np.ones(2)}), "axis: .* got 2"),
    (Case("cos_sim", {"X": np.ones((3, 2)), "Y": np.ones((2, 2))}, {},
          {"Out": np.ones(1), "XNorm": np.ones(1), "YNorm": np.ones(1)}), r"X \[3, 2\] and Y \[2, 2\]"),
    (Case("minus", {"X": np.ones((3, 2)), "Y": np.ones(2)}, {}, {"Out": np.ones((3, 2))}), "equal shapes")])
def test_what_does_not_fit_is_named(wrong, match):
    with pytest.raises(ProgramError, match=match):
        check_forward(wrong)
