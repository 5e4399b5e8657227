"""Layers of program/layers/comparison.py: values, arguments, outputs that are given."""

import inspect

import numpy as np
import pytest

from fleet_mpi.program.layers import comparison, math  # noqa: F401  (math gives operators)
from tests.unit.program.arithmetic_program import A, B, N


@pytest.mark.parametrize("make, want", [
    (lambda s: comparison.less_equal(s.a, s.b), A <= B), (lambda s: comparison.greater_than(s.a, s.b), A > B),
    (lambda s: comparison.greater_equal(s.a, s.b), A >= B), (lambda s: comparison.equal(s.n, s.n), N == N),
    (lambda s: comparison.not_equal(s.a, s.b), A != B),
    (lambda s: comparison.logical_not(comparison.logical_or(s.a > 0, s.b > 0)), ~((A > 0) | (B > 0))),
    (lambda s: comparison.logical_xor(s.a > 0, s.b > 0), (A > 0) ^ (B > 0)),
    (lambda s: comparison.is_empty(s.a), [False]), (lambda s: comparison.isfinite(s.a), [True]),
    (lambda s: comparison.has_inf(s.a), [False]), (lambda s: comparison.has_nan(s.a), [False]),
    (lambda s: comparison.each_isfinite(s.a), A == A), (lambda s: comparison.each_isinf(s.a), A != A),
    (lambda s: comparison.each_isnan(s.a), A != A), (lambda s: comparison.equal_all(s.a, s.a), [True])])
def test_values(arithmetic, make, want):
    found = arithmetic.fetch(make(arithmetic))
    assert found.shape == np.shape(want)
    np.testing.assert_allclose(found, want, rtol=1e-5)


@pytest.mark.parametrize("layer, want", [
    (comparison.less_than, "(x, y, force_cpu=None, cond=None)"), (comparison.equal, "(x, y, cond=None)"),
    (comparison.logical_and, "(x, y, out=None, name=None)"), (comparison.logical_not, "(x, out=None, name=None)"),
    (comparison.is_empty, "(x, cond=None)")])
def test_arguments_are_the_original_s(layer, want):
    assert str(inspect.signature(layer)) == want


def test_an_answer_is_written_where_it_is_asked_for(arithmetic):
    more = comparison.less_than(arithmetic.a, arithmetic.b)
    assert comparison.less_than(arithmetic.b, arithmetic.a, cond=more) is more
    assert comparison.logical_and(more, more, out=more) is more
    assert more.stop_gradient and more.dtype == "bool"
    np.testing.assert_array_equal(arithmetic.fetch(more), B < A)
