"""Ops of program/ops/reduction.py, against loops over the elements."""

import functools
import operator

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Built, Case, check_forward, check_gradient, check_shapes_at_build, checks

rng = np.random.default_rng(0)
FUNCTIONS = {"reduce_sum": sum, "reduce_mean": lambda line: sum(line) / len(line), "reduce_max": max,
             "reduce_min": min, "reduce_prod": lambda line: functools.reduce(operator.mul, line),
             "reduce_all": all, "reduce_any": any}


def reduced(function):
    """Expected output: the elements that fall together, collected one by one."""
    def expect(inputs, attrs):
        x = inputs["X"]
        dims = range(x.ndim) if attrs.get("reduce_all") else [dim % x.ndim for dim in attrs["dim"]]
        lines = {}
        for at in np.ndindex(x.shape):
            lines.setdefault(tuple(0 if i in dims else n for i, n in enumerate(at)), []).append(x[at])
        kept = [1 if i in dims else n for i, n in enumerate(x.shape)]
        out = np.empty(kept, x.dtype)
        for at, line in lines.items():
            out[at] = function(line)
        if not attrs.get("keep_dim"):
            out = out.reshape([n for i, n in enumerate(x.shape) if i not in dims] or [1])
        return {"Out": out}
    return expect


def distinct(shape):
    """Different numbers, so that the largest stays the largest while differences are taken."""
    return rng.permutation(np.arange(int(np.prod(shape)))).reshape(shape) / 4 + 0.5


WAYS = [((5,), {"dim": [0]}), ((2, 3), {"dim": [1]}), ((2, 3), {"dim": [0], "keep_dim": True}),
        ((2, 3, 2), {"dim": [-1, 0]}), ((2, 3, 2), {"dim": [1], "keep_dim": True}),
        ((2, 3, 2), {"reduce_all": True}), ((2, 3), {"reduce_all": True, "keep_dim": True}),
        ((2, 2), {"dim": [0, 1]})]
CASES = [Case("mean", {"X": rng.normal(size=shape)}, expect=lambda i, a: {"Out": np.array([i["X"].mean()])},
              grads="X", note=str(shape)) for shape in [(5,), (2, 3), (2, 1, 4)]]
CASES += [Case(name, {"X": distinct(shape)}, attrs, reduced(FUNCTIONS[name]), grads="X", note=f"{shape}{attrs}")
          for name in ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod")
          for shape, attrs in WAYS]
CASES += [Case(name, {"X": rng.random(shape) > 0.3}, attrs, reduced(FUNCTIONS[name]), note=f"{shape}{attrs}")
          for name in ("reduce_all", "reduce_any") for shape, attrs in WAYS]
CASES += [Case("reduce_prod", {"X": np.array([[1.5, 0.0, 2.0], [0.0, 3.0, 0.0]])}, {"dim": [1]},
               reduced(FUNCTIONS["reduce_prod"]), grads="X", note="with zeros"),
          Case("reduce_sum", {"X": np.arange(6).reshape(2, 3)}, {"dim": [1]}, reduced(sum), note="integers")]

test_forward, test_gradient, test_device = checks(CASES)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_dimensions_of_any_shape_are_reduced(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    dims = data.draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=3))
    name = data.draw(st.sampled_from(["reduce_sum", "reduce_mean", "reduce_max", "reduce_min"]))
    case = Case(name, {"X": distinct(shape)}, {"dim": dims, "keep_dim": data.draw(st.booleans())},
                reduced(FUNCTIONS[name]), grads="X")
    check_forward(case)
    check_shapes_at_build(case)
    check_gradient(case)


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_all_that_equal_the_extreme_get_its_gradient(name):
    case = Case(name, {"X": np.array([[2.0, 2.0], [1.0, 1.0]])}, {"dim": [1]}, reduced(max), grads="X")
    built = Built(case, with_grad=True)
    found, = built.run(built.gradients)
    weights = built.weights["Out_out_0"]
    np.testing.assert_array_equal(found, np.repeat(weights[:, None], 2, axis=1))


def test_sequences_stay_with_rows_that_stay():
    x = (np.ones((3, 3)), [[1, 2]])
    check_forward(Case("reduce_sum", {"X": x}, {"dim": [1]}, {"Out": np.full(3, 3.0)}, lods={"Out": [[1, 2]]}))
    check_forward(Case("reduce_sum", {"X": x}, {"dim": [0]}, {"Out": np.full(3, 3.0)}, lods={"Out": []}))


@pytest.mark.parametrize("attrs, match", [({"dim": [2]}, "dim: expected dimensions of an X with 2"),
                                          ({"dim": [0, -3]}, r"got \[0, -3\]")])
def test_dimensions_that_do_not_exist_are_named(attrs, match):
    with pytest.raises(ProgramError, match=match):
        check_forward(Case("reduce_sum", {"X": np.ones((2, 3))}, attrs, {"Out": np.ones(2)}))
