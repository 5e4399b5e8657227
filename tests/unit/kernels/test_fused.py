"""Sums followed by relu: both versions agree to the bit, in place and apart, cut or whole."""

import numpy as np
import pytest

from fleet_mpi.kernels.reference import fused as kernels
from fleet_mpi.kernels.threads import set_threads


def numbers(rng, *shape, dtype=np.float32):
    return rng.normal(size=shape).astype(dtype)


def sums(size, dtype):
    return lambda rng: (numbers(rng, size, dtype=dtype), numbers(rng, size, dtype=dtype), np.empty(size, dtype))


def biased(shape, dtype):
    return lambda rng: (numbers(rng, *shape, dtype=dtype), numbers(rng, shape[1], dtype=dtype), np.empty(shape, dtype))


def backward(shape, dtype):
    return lambda rng: (numbers(rng, *shape, dtype=dtype), numbers(rng, *shape, dtype=dtype), np.empty(shape, dtype),
                        np.empty(shape[1], dtype))


def without(make, position):
    return lambda rng: tuple(one for i, one in enumerate(make(rng)) if i != position)


SHAPES = [(1, 2), (7, 5), (3, 4, 6), (40, 33)]
KINDS = (np.float32, np.float64)
SUMS = [sums(size, kind) for size in (1, 100) for kind in KINDS]
BIASED = [biased(shape, kind) for shape in SHAPES for kind in KINDS]
BACKWARD = [backward(shape, kind) for shape in SHAPES if len(shape) == 2 for kind in KINDS]
KERNEL_CASES = {
    "add_relu": SUMS, "add_relu_in_place": [without(make, 2) for make in SUMS],
    "add_bias_relu": BIASED, "add_bias_relu_in_place": [without(make, 2) for make in BIASED],
    "bias_relu_backward": BACKWARD, "bias_relu_backward_in_place": [without(make, 2) for make in BACKWARD],
}


@pytest.mark.parametrize("shape", [(1 << 21,), (1 << 14, 130), (9, 40, 5000)])
def test_large_arrays_are_cut_without_a_trace(shape):
    rng = np.random.default_rng(1)
    x, y = numbers(rng, *shape), numbers(rng, shape[-1] if len(shape) == 1 else shape[1])
    made = np.empty_like(x)
    run = kernels.add_relu if len(shape) == 1 else kernels.add_bias_relu
    expected = np.maximum(x + (y if len(shape) < 3 else y[:, None]), 0)
    try:
        for count in (1, 2):
            set_threads(count)
            run(x, y, made)
            np.testing.assert_array_equal(made, expected)
    finally:
        set_threads(None)


def test_a_nan_passes():
    out = np.empty(2, np.float32)
    kernels.add_relu(np.array([np.nan, -1], np.float32), np.zeros(2, np.float32), out)
    assert np.isnan(out[0]) and out[1] == 0
