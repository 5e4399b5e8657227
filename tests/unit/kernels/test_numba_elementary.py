"""The vectorised exponential and logarithm against the C library's in float64."""

import numpy as np
import pytest

from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.numba.elementary import exp_of_negative, log_of_normal


@compiled
def exponentials(x, out):
    for i in range(x.size):
        out[i] = exp_of_negative(x[i])


@compiled
def logarithms(x, out):
    for i in range(x.size):
        out[i] = log_of_normal(x[i])


def of(loop, x):
    out = np.empty_like(x)
    loop(x, out)
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_exponential_is_good_to_two_units_in_the_last_place(dtype):
    x = -np.concatenate([np.geomspace(1e-8, 87, 20001), [0.0]]).astype(dtype)
    expected = np.exp(x.astype(np.float64))
    assert (np.abs(of(exponentials, x) - expected) <= 2 * np.spacing(expected.astype(dtype))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_logarithm_is_good_to_two_units_in_the_last_place(dtype):
    x = np.concatenate([np.geomspace(1e-37, 1e37, 20001), np.linspace(0.5, 1.5, 20001)]).astype(dtype)
    expected = np.log(x.astype(np.float64))
    assert (np.abs(of(logarithms, x) - expected) <= 2 * np.spacing(np.abs(expected).astype(dtype))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_odd_numbers_give_what_the_c_library_gives(dtype):
    x = np.array([0.0, -1.0, np.inf, np.nan], dtype)
    np.testing.assert_array_equal(of(logarithms, x), np.array([-np.inf, np.nan, np.inf, np.nan], dtype))
    assert np.isnan(of(exponentials, x)[3])


def test_far_below_zero_the_exponential_stays_a_normal_number():
    made = of(exponentials, np.array([-88.0, -1e30, -np.inf], np.float32))
    assert (made == made[0]).all() and 0 < made[0] < 2e-38
