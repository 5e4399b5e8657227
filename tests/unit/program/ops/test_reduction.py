"""Ops of program/ops/reduction.py."""

import numpy as np
import pytest
from checking import Case, check_device, check_forward, check_gradient, check_shapes_at_build, ids

rng = np.random.default_rng(0)

CASES = [Case("mean", {"X": rng.normal(size=shape)}, expect=lambda i, a: {"Out": np.array([i["X"].mean()])},
              grads="X", note=str(shape)) for shape in [(5,), (2, 3), (2, 1, 4)]]


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_forward_equals_numpy(case):
    check_forward(case)
    check_shapes_at_build(case)


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_gradient_equals_differences(case):
    check_gradient(case)


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_device_arrays_stay_on_the_device(case):
    check_device(case)
