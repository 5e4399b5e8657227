"""Ops of program/ops/matrix.py, against sums of products written as loops."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.errors import ProgramError
from tests.unit.program.ops.checking import Case, check_forward, check_gradient, check_shapes_at_build, checks

rng = np.random.default_rng(2)


def matrix_product(a, b):
    """Row by column, by hand."""
    return np.array([[sum(a[i, n] * b[n, j] for n in range(a.shape[1])) for j in range(b.shape[1])]
                     for i in range(a.shape[0])]).reshape(a.shape[0], b.shape[1])


def stacked_product(inputs, attrs):
    x, y = inputs["X"], inputs["Y"]
    vector_x, vector_y = x.ndim == 1, y.ndim == 1
    turn_x = attrs.get("transpose_X") or attrs.get("trans_x") and not vector_x
    turn_y = attrs.get("transpose_Y") or attrs.get("trans_y") and not vector_y
    x, y = x[None] if vector_x else x, y[:, None] if vector_y else y
    x, y = np.moveaxis(x, -1, -2) if turn_x else x, np.moveaxis(y, -1, -2) if turn_y else y
    stack = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = np.broadcast_to(x, stack + x.shape[-2:]), np.broadcast_to(y, stack + y.shape[-2:])
    out = np.empty(stack + (x.shape[-2], y.shape[-1]))
    for at in np.ndindex(stack):
        out[at] = matrix_product(x[at], y[at]) * attrs.get("alpha", 1.0)
    if vector_x and out.shape[-2] == 1:
        out = out[..., 0, :]
    if vector_y and out.shape[-1] == 1:
        out = out[..., 0]
    return {"Out": out if out.ndim else out.reshape(1)}


def folded_product(inputs, attrs):
    x, y, xs, ys = inputs["X"], inputs["Y"], attrs["x_num_col_dims"], attrs["y_num_col_dims"]
    rows, cols = int(np.prod(x.shape[:xs])), int(np.prod(y.shape[ys:]))
    return {"Out": matrix_product(x.reshape(rows, -1), y.reshape(-1, cols)).reshape(x.shape[:xs] + y.shape[ys:])}


def case(type, x, y, expect=stacked_product, **attrs):
    return Case(type, {"X": rng.normal(size=x), "Y": rng.normal(size=y)}, attrs, expect, grads="X Y",
                note=f"{x}{y}{attrs}")


CASES = [case("mul", x, y, folded_product, x_num_col_dims=xs, y_num_col_dims=ys) for x, y, xs, ys in [
    ((2, 3), (3, 4), 1, 1), ((2, 3, 2), (6, 2), 1, 1), ((2, 3, 4), (2, 2, 5), 2, 2), ((1, 1), (1, 1), 1, 1)]]
CASES += [case("matmul", x, y, transpose_X=tx, transpose_Y=ty, alpha=alpha) for x, y, tx, ty, alpha in [
    ((2, 3), (3, 4), False, False, 1.0), ((3, 2), (3, 4), True, False, 0.5), ((2, 3), (4, 3), False, True, 1.0),
    ((3, 2), (4, 3), True, True, -2.0), ((2, 2, 3), (2, 3, 4), False, False, 0.125),
    ((2, 3, 2), (2, 4, 3), True, True, 1.0), ((2, 2, 3), (3, 4), False, False, 1.0),
    ((2, 2, 3), (4, 3), False, True, 2.0), ((2, 3, 2), (3, 4), True, False, 1.0),
    ((2, 3), (2, 3, 4), False, False, 1.0), ((2, 1, 2, 3), (3, 3, 2), False, False, 1.0),
    ((3,), (3,), False, False, 1.0), ((3,), (3,), True, True, 1.0), ((3,), (3, 2), False, False, 1.0),
    ((2, 3), (3,), False, False, 1.0), ((2, 2, 3), (3,), False, False, 3.0), ((3,), (2, 3, 2), False, False, 1.0)]]
CASES += [case("matmul_v2", x, y, trans_x=tx, trans_y=ty) for x, y, tx, ty in [
    ((2, 3), (3, 4), False, False), ((3, 2), (4, 3), True, True), ((3,), (3,), True, True),
    ((2, 1, 2, 3), (2, 3, 2), False, False), ((2, 2, 3), (3,), False, True)]]
CASES += [case("bmm", (2, 2, 3), (2, 3, 4)), case("bmm", (1, 1, 1), (1, 1, 2))]
CASES += [Case("dot", {"X": rng.normal(size=shape), "Y": rng.normal(size=shape)},
               expect=lambda i, a: {"Out": np.array([sum(p * q for p, q in zip(one, other)) for one, other in zip(
                   i["X"].reshape(-1, 3), i["Y"].reshape(-1, 3))]).reshape(i["X"].shape[:-1] + (1,))},
               grads="X Y", note=str(shape)) for shape in [(3,), (2, 3)]]

test_forward, test_gradient, test_device = checks(CASES, step=1e-4)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_two_stacks_that_stretch_to_each_other_are_multiplied(data):
    stack = data.draw(st.lists(st.integers(1, 3), max_size=2))
    sizes = st.integers(1, 3)
    rows, inner, columns = data.draw(sizes), data.draw(sizes), data.draw(sizes)

    def some(stack):
        chosen = [data.draw(st.sampled_from([1, n])) for n in stack]
        return tuple(chosen[data.draw(st.integers(0, len(chosen))):])
    turn_x, turn_y = data.draw(st.booleans()), data.draw(st.booleans())
    x = some(stack) + ((inner, rows) if turn_x else (rows, inner))
    y = some(stack) + ((columns, inner) if turn_y else (inner, columns))
    made = case("matmul", x, y, transpose_X=turn_x, transpose_Y=turn_y, alpha=data.draw(st.sampled_from([1.0, 0.5])))
    check_forward(made)
    check_shapes_at_build(made)
    check_gradient(made, step=1e-4)


@pytest.mark.parametrize("made, match", [
    (case("matmul", (2, 3), (4, 5), lambda i, a: {"Out": np.ones((2, 5))}),
     r"X \[2, 3\] has 3 columns, but Y \[4, 5\] has 4 rows"),
    (case("bmm", (2, 3), (3, 4)), "three dimensions"),
    (case("dot", (3,), (3, 3), lambda i, a: {"Out": np.ones(1)}), "equal shapes"),
    (case("mul", (2, 3), (4, 5), lambda i, a: {"Out": np.ones((2, 5))}, x_num_col_dims=1, y_num_col_dims=1),
     "3 columns, but Y .* 4 rows")])
def test_shapes_that_do_not_fit_are_named(made, match):
    with pytest.raises(ProgramError, match=match):
        check_forward(made)
