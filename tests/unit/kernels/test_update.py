"""The update kernels: cases for test_every_kernel, cuts to the bit, the tree of squares, the choice of DGC."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.kernels import KERNELS
from fleet_mpi.kernels.reference import update

# kernel: (the arrays of the parameter's shape that follow it, how many beta powers, the numbers after the rate)
MOMENTUM = (0.9, False, 0.01, 0.5)
NESTEROV = (0.9, True, 0.01, 0.5)
DENSE = {
    "sgd": [("grad", 0, ())],
    "momentum": [("grad signed", 0, MOMENTUM), ("grad signed", 0, NESTEROV)],
    "adagrad": [("grad positive", 0, (1e-6,))],
    "decayed_adagrad": [("grad positive", 0, (0.95, 1e-6))],
    "adam": [("grad signed positive", 2, (0.9, 0.999, 1e-8, coeff)) for coeff in (0.0, 0.01)],
    "adamax": [("grad signed positive", 1, (0.9, 0.999, 1e-8))],
    "adadelta": [("grad positive positive", 0, (0.95, 1e-6))],
    "rmsprop": [("grad positive signed", 0, (0.95, 1e-6, 0.9))],
    "ftrl": [("grad positive signed", 0, (0.1, 0.2, power)) for power in (-0.5, -0.7)],
}
ROWS = {
    "sgd_rows": DENSE["sgd"],
    "momentum_rows": DENSE["momentum"],
    "adagrad_rows": DENSE["adagrad"],
    "ftrl_rows": DENSE["ftrl"],
    "adam_rows": [(kinds, powers, rest + (lazy,)) for kinds, powers, rest in DENSE["adam"] for lazy in (False, True)],
}


def array(rng, kind, shape, dtype):
    values = rng.standard_normal(shape)
    return (abs(values) if kind == "positive" else values).astype(dtype)


def arguments_of(rng, kinds, powers, rest, shape, dtype, ids=None):
    grad, *states = kinds.split()
    grad_shape = shape if ids is None else (len(ids), *shape[1:])
    arrays = [array(rng, "signed", shape, dtype), array(rng, grad, grad_shape, dtype)]
    if ids is not None:
        arrays.insert(1, ids)
    arrays += [array(rng, kind, shape, dtype) for kind in states]
    ones = [np.array([value], dtype) for value in (0.81, 0.998)[:powers]] + [np.array([0.05], np.float32)]
    return (*arrays, *ones, *rest)


def dense_case(kinds, powers, rest, size, dtype):
    return lambda rng: arguments_of(rng, kinds, powers, rest, (size,), dtype)


def rows_case(kinds, powers, rest, dtype):
    return lambda rng: arguments_of(rng, kinds, powers, rest, (9, 5), dtype, rng.permutation(9)[:4])


def squares_case(size, dtype, *start):
    return lambda rng: (array(rng, "signed", (size,), dtype), *start)


def lars_case(decay, dtype):
    def make(rng):
        arrays = [array(rng, "signed", (37,), dtype) for _ in range(3)]
        squares = [update.square_sum(one) for one in arrays[:2]]
        return (*arrays, np.array([0.1], dtype), *squares, 0.9, 0.001, decay, 1e-9, 0.5)
    return make


def lamb_direction_case(dtype):
    def make(rng):
        param, grad, moment1, moment2, *powers, _ = arguments_of(rng, "grad signed positive", 2, (), (37,), dtype)
        return (param, grad, moment1, moment2, *powers, np.empty_like(param), 0.9, 0.999, 1e-6, 0.01)
    return make


def lamb_step_case(square, dtype):
    return lambda rng: (array(rng, "signed", (37,), dtype), array(rng, "signed", (37,), dtype),
                        np.array([0.1], dtype), np.array([square]), np.array([3.0]))


DTYPES = (np.float32, np.float64)
SIZES = (0, 1, 13, 1027)
KERNEL_CASES = {name: [dense_case(kinds, powers, rest, size, dtype)
                       for kinds, powers, rest in variants for size in SIZES for dtype in DTYPES]
                for name, variants in DENSE.items()}
KERNEL_CASES |= {name + "_unless": [dense_case(kinds, powers, (*rest, np.array([skip])), size, dtype)
                                    for kinds, powers, rest in DENSE[name] for size in SIZES for dtype in DTYPES
                                    for skip in (False, True)]
                 for name in ("sgd", "momentum", "adam")}
KERNEL_CASES |= {name: [rows_case(kinds, powers, rest, dtype) for kinds, powers, rest in variants for dtype in DTYPES]
                 for name, variants in ROWS.items()}
KERNEL_CASES |= {
    "centered_rmsprop": [lambda rng: (*centered_arrays(rng, 133), np.array([0.05], np.float32), 0.95, 1e-6, 0.9)],
    "lars": [lars_case(decay, dtype) for decay in (0.0, 0.0005) for dtype in DTYPES],
    "lamb_direction": [lamb_direction_case(dtype) for dtype in DTYPES],
    "lamb_step": [lamb_step_case(square, dtype) for square in (0.0, 2.0) for dtype in DTYPES],
    "square_sum": [squares_case(size, dtype) for size in (0, 1, 3, 8, 4095, 4096, 70_001) for dtype in DTYPES],
    "square_nodes": [squares_case(size, np.float32, start)
                     for size in (0, 1, 7, 9000) for start in (0, 1, 6, 4093, 8192)],
}
KERNEL_TOLERANCES = {"ftrl": 1e-5, "ftrl_rows": 1e-5}  # the power function is the library's, and each has its own


def centered_arrays(rng, size):
    """A mean of squares above the square of the mean, as it is in any run: else the spread has no root."""
    grad, moment, mean_grad = (array(rng, "signed", (size,), np.float32) for _ in range(3))
    return array(rng, "signed", (size,), np.float32), grad, mean_grad ** 2 + np.float32(0.5), moment, mean_grad


@pytest.mark.parametrize("name", [*DENSE, "centered_rmsprop", "lars", "lamb_direction", "lamb_step"])
def test_slices_give_the_bits_of_the_whole(name):
    kernel = KERNELS["update", name]
    whole = KERNEL_CASES[name][-1](np.random.default_rng(1))
    size = whole[0].size
    parts = [one.copy() if isinstance(one, np.ndarray) else one for one in whole]
    ends = [0, 1, 2, 9, 17, size // 2 + 1, size]
    for begin, end in zip(ends, ends[1:], strict=False):
        # [1] arrays are copied, so that each slice sees the beta powers of this step.
        kernel(*(one if not isinstance(one, np.ndarray) else one[begin:end] if one.size == size else one.copy()
                 for one in parts))
    kernel(*whole)
    for one, other in zip(whole, parts, strict=True):
        if isinstance(one, np.ndarray) and one.size == size:
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("skip", [False, True])
def test_a_skipped_update_changes_no_bit_and_another_all(name, skip):
    kernel, make = KERNELS["update", name], KERNEL_CASES[name][-1]
    expected, given = make(np.random.default_rng(1)), make(np.random.default_rng(1))
    if skip:
        given[1][3] = np.nan
    else:
        kernel(*expected)
    KERNELS["update", name + "_unless"](*given, np.array([skip]))
    for position, (one, other) in enumerate(zip(given, expected, strict=True)):
        if isinstance(one, np.ndarray) and position != 1:
            np.testing.assert_array_equal(one, other)


def test_a_gradient_that_is_no_number_reaches_the_parameter_in_adamax():
    param, grad = np.zeros(3, np.float32), np.array([1, np.nan, 1], np.float32)
    update.adamax(param, grad, np.zeros_like(param), np.ones_like(param), np.array([0.9], np.float32),
                  np.array([0.1], np.float32), 0.9, 0.999, 1e-8)
    assert np.isnan(param).tolist() == [False, True, False]


def join(nodes):
    """What update_rules does with the nodes of all slices, written over again on exact positions."""
    sums = {(level, index): value for level, index, value in nodes}

    def total(level, index):
        if (level, index) in sums:
            return sums[level, index]
        return total(level - 1, 2 * index) + total(level - 1, 2 * index + 1) if level else 0.0

    return total(20, 0)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 20_000), st.lists(st.integers(0, 20_000), max_size=6), st.integers(0, 9))
def test_the_tree_of_squares_does_not_depend_on_the_cut(size, cuts, seed):
    x = np.random.default_rng(seed).standard_normal(size).astype(np.float32)
    ends = sorted({0, size, *(cut for cut in cuts if cut < size)})
    nodes = [node for begin, end in zip(ends, ends[1:], strict=False)
             for node in update.square_nodes(x[begin:end], begin)]
    assert join(nodes) == update.square_sum(x)[0]


def test_the_sum_of_squares_is_that_of_exact_arithmetic():
    x = (np.random.default_rng(2).standard_normal(123_457) * 10).astype(np.float32)
    exact = math.fsum(float(value) ** 2 for value in x)
    assert abs(update.square_sum(x)[0] / exact - 1) < 1e-14


@pytest.mark.parametrize("nesterov", [False, True])
def test_dgc_keeps_exactly_the_largest_and_clears_them(nesterov):
    rng = np.random.default_rng(3)
    grad, u, v = (rng.standard_normal(200).astype(np.float32) for _ in range(3))
    expected_u = 0.9 * (u + grad) if nesterov else 0.9 * u + grad
    expected_v = v + expected_u + (grad if nesterov else 0)
    chosen = np.argsort(-abs(expected_v))[:7]
    out = np.empty_like(grad)
    update.dgc_select(grad, u, v, 7, 0.9, nesterov, out)
    assert np.flatnonzero(out).tolist() == sorted(chosen.tolist())
    np.testing.assert_allclose(out[chosen], expected_v[chosen], rtol=1e-5)
    assert not u[chosen].any() and not v[chosen].any()
    np.testing.assert_allclose(np.delete(v, chosen), np.delete(expected_v, chosen), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.delete(u, chosen), np.delete(expected_u, chosen), rtol=1e-4, atol=1e-6)


def test_dgc_takes_the_earlier_of_equal_values():
    grad, out = np.array([1, -2, 2, 1, -1, 2], np.float32), np.empty(6, np.float32)
    update.dgc_select(grad, np.zeros(6, np.float32), np.zeros(6, np.float32), 4, 0.9, False, out)
    assert out.tolist() == [1, -2, 2, 0, 0, 2]
