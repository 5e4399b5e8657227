"""Layers of program/layers/math.py: ops, attributes, names, values."""

import inspect

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.layers import comparison, math, reduction
from tests.unit.program.arithmetic_program import A, B


@pytest.mark.parametrize("name, want", [
    ("add", A + B), ("sub", A - B), ("mul", A * B), ("div", A / B), ("max", np.maximum(A, B)),
    ("min", np.minimum(A, B)), ("mod", A % B), ("floordiv", A // B)])
def test_two_variables_element_by_element(arithmetic, name, want):
    layer = getattr(math, f"elementwise_{name}")
    assert str(inspect.signature(layer)) == "(x, y, axis=-1, act=None, name=None)"
    out = layer(arithmetic.a, arithmetic.b)
    assert out.name == f"elementwise_{name}_0.tmp_0"
    np.testing.assert_allclose(arithmetic.fetch(out), want, rtol=1e-6)


def test_axis_and_activation(arithmetic):
    rows = reduction.reduce_sum(arithmetic.a, dim=1)
    out = math.elementwise_add(arithmetic.a, rows, axis=0, act="relu")
    np.testing.assert_allclose(arithmetic.fetch(out), np.maximum(A + A.sum(1, keepdims=True), 0), rtol=1e-6)


@pytest.mark.parametrize("make, want", [
    (lambda s: math.matmul(s.a, s.b, transpose_y=True, alpha=0.5), A @ B.T * 0.5),
    (lambda s: math.matmul_v2(s.a, s.b, transpose_x=True), A.T @ B),
    (lambda s: math.dot(s.a, s.b), (A * B).sum(1, keepdims=True)),
    (lambda s: math.scale(s.a, 2.0, 1.0), A * 2 + 1),
    (lambda s: math.scale(s.a, 2.0, bias=1.0, bias_after_scale=False, act="relu"), np.maximum((A + 1) * 2, 0)),
    (lambda s: math.scale(s.a, scale=reduction.mean(s.b)), A * B.mean()),
    (lambda s: math.pow(s.b, 2.0), B ** 2),
    (lambda s: math.pow(math.scale(s.b, 0.0, 2.0), reduction.mean(s.b)), np.full(A.shape, 2 ** B.mean())),
    (lambda s: math.cast(s.a, "int64"), A.astype(np.int64)),
    (lambda s: math.clip(s.a, -1, 1.5), A.clip(-1, 1.5)),
    (lambda s: math.clip_by_norm(s.a, 1.0), A / np.sqrt((A ** 2).sum())),
    (lambda s: math.increment(math.scale(s.a), 2.0), A + 2),
    (lambda s: math.increment(s.a, in_place=False), A + 1),
    (lambda s: math.sums([s.a, s.b, s.a]), A + B + A),
    (lambda s: math.sum([s.a, s.b]), A + B),
    (lambda s: math.cumsum(s.a, axis=0, reverse=True), A[::-1].cumsum(0)[::-1]),
    (lambda s: math.cos_sim(s.a, s.b),
     ((A * B).sum(1) / np.sqrt((A ** 2).sum(1) * (B ** 2).sum(1)))[:, None]),
    (lambda s: math.l2_normalize(s.a, axis=1), A / np.sqrt((A ** 2).sum(1, keepdims=True))),
    (lambda s: math.p_norm(s.a, 1.0, axis=0), abs(A).sum(0)),
    (lambda s: math.p_norm(s.a), np.sqrt((A ** 2).sum())[None]),
    (lambda s: math.square_error_cost(s.a, s.b), (A - B) ** 2)])
def test_values(arithmetic, make, want):
    found = arithmetic.fetch(make(arithmetic))
    assert found.shape == np.shape(want)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def test_mul_folds_and_bmm_stacks(arithmetic):
    stack = arithmetic.program.global_block().create_var(name="stack", shape=(2, 2, 3), dtype="float32", is_data=True)
    values = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    outs = [math.mul(stack, arithmetic.b.T, x_num_col_dims=2, y_num_col_dims=1),
            math.bmm(stack, math.matmul(stack, stack, True))]
    found = Executor().run(arithmetic.program, feed={"b": B, "stack": values}, fetch_list=outs, scope=Scope())
    np.testing.assert_allclose(found[0], values @ B.T, rtol=1e-6)
    np.testing.assert_allclose(found[1], values @ (values.transpose(0, 2, 1) @ values), rtol=1e-6)


@pytest.mark.parametrize("layer, want", [
    (math.matmul, "(x, y, transpose_x=False, transpose_y=False, alpha=1.0, name=None)"),
    (math.scale, "(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None, name=None)")])
def test_arguments_are_the_original_s(layer, want):
    assert str(inspect.signature(layer)) == want


def test_counting_in_place_changes_the_counter_of_the_scope(arithmetic):
    counter = arithmetic.program.global_block().create_var(name="counter", shape=[1], dtype="int64", persistable=True)
    assert math.increment(x=counter, value=2.0, in_place=True) is counter
    scope = Scope()
    scope.var("counter").get_tensor().set(np.array([5]))
    for want in (7, 9):
        found, = Executor().run(arithmetic.program, fetch_list=[counter], scope=scope)
        assert found.tolist() == [want] and found.dtype == np.int64


def test_a_sum_is_written_where_it_is_asked_for(arithmetic):
    out = math.scale(arithmetic.a, 0.0)
    assert math.sums([arithmetic.a, arithmetic.b], out=out) is out
    np.testing.assert_array_equal(arithmetic.fetch(out), A + B)


def test_square_error_cost_is_a_difference_and_a_square(arithmetic):
    out = math.square_error_cost(input=arithmetic.a, label=arithmetic.b)
    assert arithmetic.types == ["elementwise_sub", "square"]
    assert out.name == "square_error_cost_0.tmp_1"


def test_what_is_no_variable_is_refused(arithmetic):
    for make in (lambda: math.elementwise_add(arithmetic.a, 1), lambda: reduction.reduce_sum(3.0),
                 lambda: comparison.less_than(arithmetic.a, None), lambda: math.cos_sim(arithmetic.a, A)):
        with pytest.raises(UsageError, match="must be a variable of the program"):
            make()
