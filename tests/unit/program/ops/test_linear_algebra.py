"""Ops of program/ops/linear_algebra.py."""

import numpy as np
import pytest

from fleet_mpi.errors import ProgramError
from fleet_mpi.program.layers.data import static_data
from tests.unit.program.ops.checking import Built, Case, check_device, check_forward, check_shapes_at_build, checks

rng = np.random.default_rng(0)


def x(*shape):
    return rng.normal(size=shape)


def kron(inputs, attrs):
    return {"Out": np.kron(inputs["X"], inputs["Y"])}


def cross(axis):
    def expect(inputs, attrs):
        (a, b, c), (d, e, f) = (np.moveaxis(inputs[slot], axis, 0) for slot in ("X", "Y"))
        return {"Out": np.moveaxis(np.stack([b * f - c * e, c * d - a * f, a * e - b * d]), 0, axis)}
    return expect


def inverted(inputs, attrs):
    return {"Output": np.linalg.solve(inputs["Input"], np.broadcast_to(np.eye(inputs["Input"].shape[-1]),
                                                                       inputs["Input"].shape))}


CASES = [
    *(Case("kron", {"X": x(*one), "Y": x(*other)}, {}, kron, grads="X Y", note=f"{one}{other}") for one, other in (
        ((2, 3), (3, 2)), ((3,), (2,)), ((2,), (2, 2)), ((2, 1, 2), (3, 2)), ((1, 2, 1, 2), (2, 1, 2, 1)))),
    Case("cross", {"X": x(2, 3), "Y": x(2, 3)}, {"dim": 1}, cross(1), grads="X Y"),
    Case("cross", {"X": x(2, 3, 3), "Y": x(2, 3, 3)}, {}, cross(1), grads="X Y", note="the first of size 3"),
    Case("cross", {"X": x(3, 2, 3), "Y": x(3, 2, 3)}, {"dim": -1}, cross(2), grads="X Y", note="from the end"),
    Case("inverse", {"Input": x(3, 3) + 3 * np.eye(3)}, {}, inverted, grads="Input", by="Output"),
    Case("inverse", {"Input": x(2, 2, 2) + 3 * np.eye(2)}, {}, inverted, grads="Input", by="Output", note="a stack"),
    Case("inverse", {"Input": np.array([[0.0, 2.0], [4.0, 0.0]])}, {},
         {"Output": np.array([[0.0, 0.25], [0.5, 0.0]])}, note="by rows exchanged"),
]

test_forward, test_gradient, test_device = checks(CASES)


def positive(*shape):
    root = x(*shape)
    return root @ root.swapaxes(-1, -2) + np.eye(shape[-1])


def roots(inputs, attrs):
    """By the definition, column by column."""
    given, out = inputs["X"], np.zeros_like(inputs["X"])
    for j in range(given.shape[-1]):
        out[..., j, j] = np.sqrt(given[..., j, j] - (out[..., j, :j] ** 2).sum(-1))
        for i in range(j + 1, given.shape[-1]):
            out[..., i, j] = (given[..., i, j] - (out[..., i, :j] * out[..., j, :j]).sum(-1)) / out[..., j, j]
    return {"Out": out.swapaxes(-1, -2) if attrs.get("upper") else out}


ROOTS = [Case("cholesky", {"X": positive(*shape)}, {"upper": upper}, roots, note=f"{shape}{upper}")
         for shape in ((1, 1), (3, 3), (2, 3, 3)) for upper in (False, True)]


@pytest.mark.parametrize("case", ROOTS, ids=repr)
def test_roots_of_matrices(case):
    check_forward(case)
    check_shapes_at_build(case)
    check_device(case)


@pytest.mark.parametrize("case", ROOTS, ids=repr)
def test_the_gradient_of_a_root_is_that_of_symmetric_changes(case):
    """A change of one element alone leaves the symmetric matrices, so the common check cannot see it."""
    case.grads = ["X"]
    built, step = Built(case, with_grad=True), 1e-6
    found, = built.run(built.gradients)
    assert np.allclose(found, found.swapaxes(-1, -2))
    fed, (name, weight) = built.feed[built.sources[0]], next(iter(built.weights.items()))
    for _ in range(4):
        change = x(*fed.shape)
        change += change.swapaxes(-1, -2)
        totals = [(built.run([name], feed={**built.feed, built.sources[0]: fed + sign * step * change})[0]
                   * weight).sum()
                  for sign in (1, -1)]
        assert (found * change).sum() == pytest.approx((totals[0] - totals[1]) / (2 * step), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("type, slot, out, value, words", [
    ("inverse", "Input", "Output", [[1.0, 2.0], [2.0, 4.0]], "matrices that have an inverse"),
    ("cholesky", "X", "Out", [[1.0, 2.0], [2.0, 1.0]], "symmetric positive definite")])
def test_a_matrix_without_an_answer_is_refused_by_name(type, slot, out, value, words):
    with pytest.raises(ProgramError, match=words):
        Built(Case(type, {slot: np.array(value)}, {}, {out: np.zeros((2, 2))})).run([f"{out}_out_0"])


@pytest.mark.parametrize("type, slots, words", [
    ("inverse", {"Input": [2, 3]}, "expected square matrices"), ("cross", {"X": [2, 4], "Y": [2, 4]}, "of size 3"),
    ("cross", {"X": [2, 3], "Y": [3, 3]}, "of one shape")])
def test_shapes_that_do_not_fit_are_refused_while_building(type, slots, words):
    inputs = {slot: [static_data(slot, shape)] for slot, shape in slots.items()}
    with pytest.raises(ProgramError, match=words):
        next(iter(inputs.values()))[0].block.append_op(type, inputs,
                                                       {"Output" if type == "inverse" else "Out": ["out"]})
