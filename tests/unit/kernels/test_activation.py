"""Loops of activations: the compiled versions, and the error function against the C library's."""

import math

import numpy as np
import pytest

from fleet_mpi.kernels.reference import activation


def backward_case(shape, dtype):
    def make(rng):
        out = np.maximum(rng.standard_normal(shape), 0).astype(dtype)
        return out, rng.standard_normal(shape).astype(dtype), np.empty(shape, dtype)
    return make


def in_place_case(shape, dtype):
    return lambda rng: backward_case(shape, dtype)(rng)[:2]


def values_case(dtype, in_place=False):
    def make(rng):
        x = (rng.standard_normal((3, 50)) * 30).astype(dtype)
        return (x,) if in_place else (x, np.empty_like(x))
    return make


SHAPES = [((0,), np.float32), ((7,), np.float32), ((3, 5, 2), np.float64), ((40, 33), np.float32)]
KERNEL_CASES = {
    "relu_backward": [backward_case(*case) for case in SHAPES],
    "relu_backward_in_place": [in_place_case(*case) for case in SHAPES],
    "erf": [values_case(np.float32), values_case(np.float64)],
    "sigmoid": [values_case(np.float32), values_case(np.float64)],
    "sigmoid_in_place": [values_case(np.float32, True), values_case(np.float64, True)],
}
KERNEL_TOLERANCES = {"erf": 2e-6, "sigmoid": 5e-7, "sigmoid_in_place": 5e-7}


def test_the_gradient_passes_where_the_output_is_above_zero():
    out, dout = np.array([0.0, 2.0, 0.0, 1.0]), np.array([5.0, 6.0, np.inf, -7.0])
    dx = np.empty(4)
    activation.relu_backward(out, dout, dx)
    assert dx.tolist() == [0.0, 6.0, 0.0, -7.0]
    activation.relu_backward_in_place(out, dout)
    assert dout.tolist() == dx.tolist()


@pytest.mark.parametrize("version", ["reference", "numba"])
def test_erf_equals_the_one_of_the_c_library(version):
    run = activation.erf.reference if version == "reference" else activation.erf.version("numba")
    x = np.concatenate([np.linspace(-7, 7, 701), [0.0, 1e-30, -1e-9, 50.0, -np.inf, np.inf]])
    want = np.array([math.erf(value) for value in x])
    run(x, x)  # in place
    np.testing.assert_allclose(x, want, rtol=2e-14, atol=1e-300)


@pytest.mark.parametrize("version", ["reference", "numba"])
def test_sigmoid_at_the_ends(version):
    run = activation.sigmoid.reference if version == "reference" else activation.sigmoid.version("numba")
    x = np.array([-np.inf, -1000, -87, -20, 0, 20, 1000, np.inf, np.nan], np.float32)
    out = np.empty_like(x)
    with np.errstate(all="raise", under="ignore"):
        run(x, out)
    np.testing.assert_allclose(out[:-1], [0, 0, 1.6458114e-38, 2.0611537e-09, 0.5, 1, 1, 1], rtol=1e-6, atol=2e-38)
    assert np.isnan(out[-1])
