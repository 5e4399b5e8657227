"""Layers of program/layers/reduction.py: values, arguments."""

import inspect

import numpy as np
import pytest

from fleet_mpi.program.layers import comparison, reduction
from tests.unit.program.arithmetic_program import A, B


@pytest.mark.parametrize("make, want", [
    (lambda s: reduction.mean(s.a), [A.mean()]),
    (lambda s: reduction.reduce_sum(s.a), [A.sum()]),
    (lambda s: reduction.reduce_sum(s.a, dim=[0, 1], keep_dim=True), [[A.sum()]]),
    (lambda s: reduction.reduce_mean(s.a, dim=-1), A.mean(1)),
    (lambda s: reduction.reduce_max(s.a, 0), A.max(0)),
    (lambda s: reduction.reduce_min(s.a, [1], True), A.min(1, keepdims=True)),
    (lambda s: reduction.reduce_prod(s.a, 1), A.prod(1)),
    (lambda s: reduction.reduce_all(comparison.less_than(s.a, s.b), 1), (A < B).all(1)),
    (lambda s: reduction.reduce_any(comparison.less_than(s.a, s.b)), [True])])
def test_values(arithmetic, make, want):
    found = arithmetic.fetch(make(arithmetic))
    assert found.shape == np.shape(want)
    np.testing.assert_allclose(found, want, rtol=1e-5)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "all", "any"])
def test_arguments_are_the_original_s(name):
    layer = getattr(reduction, f"reduce_{name}")
    assert str(inspect.signature(layer)) == "(input, dim=None, keep_dim=False, name=None)"


@pytest.mark.parametrize("dim, want", [(None, True), ([], True), (0, False), ([0, 1], True), ([1], False)])
def test_all_dimensions_or_none_mean_all(arithmetic, dim, want):
    reduction.reduce_sum(arithmetic.a, dim=dim)
    assert arithmetic.program.global_block().ops[-1].attr("reduce_all") is want
