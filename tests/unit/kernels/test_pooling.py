"""Pooling: the reference and the host's version against the definition, gradients, ties, empty windows, equal bits."""

import itertools

import numpy as np
import pytest

from fleet_mpi.arrays import to_host
from fleet_mpi.errors import ProgramError
from fleet_mpi.kernels import threads
from fleet_mpi.kernels.reference import pooling
from fleet_mpi.kernels.reference.pooling import (
    adaptive_windows,
    avg_pool_backward,
    avg_pool_forward,
    global_windows,
    max_pool_backward,
    max_pool_forward,
    sliding_windows,
)
from fleet_mpi.testing import device

CASES = {  # batch and channels, sizes, windows of these sizes
    "2x2": ((2, 3), (6, 8), lambda sizes: sliding_windows(sizes, 2, 2, 0)),
    "3x3 stride 2 padded": ((2, 3), (9, 12), lambda sizes: sliding_windows(sizes, 3, 2, 1)),
    "inclusive": ((2, 3), (9, 12), lambda sizes: sliding_windows(sizes, 3, 2, 1, exclusive=False)),
    "ceil mode": ((2, 3), (8, 7), lambda sizes: sliding_windows(sizes, (3, 2), 2, (1, 0), ceil_mode=True)),
    "overlapping, long": ((1, 2), (11, 13), lambda sizes: sliding_windows(sizes, (4, 10), (1, 2), 2)),
    "asymmetric padding": ((2, 1), (7, 7), lambda sizes: sliding_windows(sizes, 3, 2, ((2, 0), (0, 1)))),
    "gaps between windows": ((2, 1), (9, 9), lambda sizes: sliding_windows(sizes, 1, 3, 0)),
    "a last window outside": ((1, 2), (4, 4), lambda sizes: sliding_windows(sizes, 1, 3, 1, ceil_mode=True)),
    "global": ((2, 5), (7, 6), global_windows),
    "adaptive": ((2, 3), (7, 10), lambda sizes: adaptive_windows(sizes, (3, 4))),
    "adaptive to more": ((1, 2), (3, 2), lambda sizes: adaptive_windows(sizes, (5, 4))),
    "3-d": ((2, 2), (4, 5, 6), lambda sizes: sliding_windows(sizes, (2, 3, 3), (2, 2, 1), (0, 1, 1))),
    "3-d adaptive": ((1, 2), (4, 5, 6), lambda sizes: adaptive_windows(sizes, (2, 3, 4))),
    "3-d global": ((2, 2), (3, 4, 5), global_windows),
    "many planes": ((4, 40), (25, 30), lambda sizes: sliding_windows(sizes, 3, 2, 1)),
}
VERSIONS = {"host": lambda kernel: kernel, "reference": lambda kernel: kernel.reference}


def inputs(case, dtype=np.float64):
    """Data, windows and a gradient of the output; the data repeat, so that maxima tie."""
    lead, sizes, make = CASES[case]
    windows = make(sizes)
    rng = np.random.default_rng(len(case))
    x = rng.integers(-5, 5, lead + sizes).astype(dtype)
    dout = rng.standard_normal(lead + tuple(len(window.starts) for window in windows)).astype(dtype)
    return x, windows, dout


def run_all(version, x, windows, dout):
    """Everything the four kernels make, by name; targets start as NaN or a wrong place."""
    made = {name: np.full_like(like, np.nan) for name, like in (
        ("max", dout), ("avg", dout), ("max gradient", x), ("avg gradient", x))}
    made["index"] = np.full(dout.shape, 10 ** 6, np.int32)
    version(max_pool_forward)(x, made["max"], made["index"], windows)()
    version(max_pool_backward)(dout, made["index"], made["max gradient"], windows)()
    version(avg_pool_forward)(x, made["avg"], windows)()
    version(avg_pool_backward)(dout, made["avg gradient"], windows)()
    return made


def definition(x, windows, dout):
    """The same window by window, in plain indexing."""
    made = {"max": np.empty_like(dout), "avg": np.empty_like(dout), "index": np.empty(dout.shape, np.int32),
            "max gradient": np.zeros_like(x), "avg gradient": np.zeros_like(x)}
    places = np.arange(x[0, 0].size).reshape(x.shape[2:])
    for at in itertools.product(*map(range, dout.shape)):
        cut = tuple(slice(window.starts[i], window.ends[i]) for window, i in zip(windows, at[2:]))
        seen, where = x[at[:2]][cut], places[cut].ravel()
        count = np.prod([window.counts[i] for window, i in zip(windows, at[2:])])
        made["avg"][at] = seen.sum() / max(count, 1)
        made["avg gradient"][at[:2]][cut] += dout[at] / max(count, 1)
        made["max"][at], made["index"][at] = np.finfo(x.dtype).min, -1
        if seen.size:
            made["max"][at], made["index"][at] = seen.max(), where[seen.argmax()]  # argmax: the first of equals
            made["max gradient"][at[:2]].reshape(-1)[made["index"][at]] += dout[at]
    return made


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_pooling_is_its_definition(case, version, dtype):
    given = inputs(case, dtype)
    made, expected = run_all(VERSIONS[version], *given), definition(*given)
    close = {"rtol": 1e-5, "atol": 1e-5} if dtype is np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    for name in expected:
        np.testing.assert_allclose(made[name], expected[name], **close, err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_device_arrays_are_pooled_on_the_device(case):
    x, windows, dout = inputs(case)
    expected = definition(x, windows, dout)
    made = {name: device.array(np.full_like(array, 77)) for name, array in expected.items()}
    x, dout = device.array(x), device.array(dout)
    max_pool_forward(x, made["max"], made["index"], windows)()
    max_pool_backward(dout, made["index"], made["max gradient"], windows)()
    avg_pool_forward(x, made["avg"], windows)()
    avg_pool_backward(dout, made["avg gradient"], windows)()
    for name in expected:
        np.testing.assert_allclose(to_host(made[name]), expected[name], atol=1e-12, err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_bits_do_not_depend_on_the_number_of_threads(case):
    results = []
    for count in (1, 2):
        threads.set_threads(count)
        try:
            made = run_all(VERSIONS["host"], *inputs(case, np.float32))
            results.append({name: array.tobytes() for name, array in made.items()})
        finally:
            threads.set_threads(None)
    assert results[0] == results[1]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("at", [(0, 0), (1, 2), (3, 3)])
def test_a_nan_is_the_maximum_of_its_window(version, at):
    x = np.random.default_rng(0).standard_normal((1, 1, 4, 4))
    x[(0, 0) + at] = np.nan
    out, index = np.zeros((1, 1, 1, 1)), np.zeros((1, 1, 1, 1), np.int32)
    VERSIONS[version](max_pool_forward)(x, out, index, global_windows((4, 4)))()
    assert np.isnan(out).all() and index.item() == at[0] * 4 + at[1]


@pytest.mark.parametrize("version", VERSIONS)
def test_infinite_data_have_a_place_too(version):
    x = np.full((1, 1, 2, 2), -np.inf)
    out, index = np.zeros((1, 1, 1, 1)), np.full((1, 1, 1, 1), 9, np.int32)
    VERSIONS[version](max_pool_forward)(x, out, index, global_windows((2, 2)))()
    assert out.item() == -np.inf and index.item() == 0


def test_ceil_mode_counts_a_started_window():
    assert pooling.out_extent(7, 2, 2, (0, 0), False) == 3
    assert pooling.out_extent(7, 2, 2, (0, 0), True) == 4


def test_windows_that_do_not_fit_are_refused():
    with pytest.raises(ProgramError, match="expected windows that fit in, got 0 along the extent 2"):
        sliding_windows((5, 2), 3, 1, 0)


def test_an_output_of_the_wrong_shape_is_refused():
    x, windows, dout = inputs("2x2")
    with pytest.raises(ProgramError, match=r"expected data \(2, 3, 6, 8\) and an output \(2, 3, 3, 4\)"):
        avg_pool_forward(x, dout[..., :3], windows)


def test_arrays_that_are_not_contiguous_are_computed_too():
    x, windows, dout = inputs("3x3 stride 2 padded")
    turned = [np.ascontiguousarray(array.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0) for array in (x, dout)]
    made, expected = run_all(VERSIONS["host"], turned[0], windows, turned[1]), definition(x, windows, dout)
    for name in expected:
        np.testing.assert_allclose(made[name], expected[name], atol=1e-12, err_msg=name)
