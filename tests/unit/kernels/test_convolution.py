"""Convolution: the reference against the definition, the host's version against the reference."""

import itertools

import numpy as np
import pytest

from fleet_mpi.arrays import to_host
from fleet_mpi.errors import ProgramError
from fleet_mpi.kernels import threads
from fleet_mpi.kernels.reference import convolution
from fleet_mpi.kernels.reference.convolution import conv_backward_data, conv_backward_weight, conv_forward
from fleet_mpi.testing import device

# batch, channels in, size, channels out, kernel, strides, paddings, dilations, groups
CASES = {
    "1x1": (3, 5, (6, 7), 4, (1, 1), 1, 0, 1, 1),
    "1x1 of many small images": (7, 9, (3, 3), 4, (1, 1), 1, 0, 1, 1),
    "1x1 with stride": (2, 5, (7, 8), 4, (1, 1), (2, 3), 0, 1, 1),
    "1x1 with padding": (2, 5, (7, 8), 4, (1, 1), 1, 1, 1, 1),
    "1x1 stride 1 cut to a smaller output": (2, 3, (6, 6), 4, (1, 1), 1, ((0, -1), (0, -2)), 1, 1),
    "3x3 same": (3, 4, (9, 8), 6, (3, 3), 1, 1, 1, 1),
    "3x3 same of many small images": (5, 4, (3, 4), 6, (3, 3), 1, 1, 1, 1),
    "3x3 valid": (2, 3, (6, 9), 2, (3, 3), 1, 0, 1, 1),
    "3x3 stride 2": (2, 3, (9, 8), 4, (3, 3), 2, 1, 1, 1),
    "7x7 stride 2": (2, 3, (19, 18), 4, (7, 7), 2, 3, 1, 1),
    "stride 3": (2, 3, (11, 13), 4, (3, 2), 3, 1, 1, 1),
    "padding wider than the image": (1, 2, (2, 2), 3, (3, 3), 1, 4, 1, 1),
    "asymmetric padding": (2, 3, (7, 6), 4, (3, 3), (1, 2), ((2, 0), (1, 3)), 1, 1),
    "asymmetric padding, output as wide": (2, 3, (7, 6), 4, (3, 3), 1, ((2, 0), (0, 2)), 1, 1),
    "dilation": (2, 3, (11, 12), 4, (3, 3), 1, 2, 2, 1),
    "dilation and stride": (2, 3, (11, 12), 4, (3, 2), 2, 1, (2, 3), 1),
    "groups": (2, 6, (7, 7), 4, (3, 3), 1, 1, 1, 2),
    "groups with stride": (3, 6, (8, 7), 9, (3, 3), 2, 1, 1, 3),
    "groups of 1x1": (3, 8, (4, 4), 12, (1, 1), 1, 0, 1, 4),
    "depthwise": (2, 5, (9, 17), 5, (3, 3), 1, 1, 1, 5),
    "depthwise, two each, stride 2": (2, 4, (9, 20), 8, (3, 3), 2, 1, 1, 4),
    "depthwise, dilated, stride 3": (2, 3, (15, 16), 3, (3, 2), 3, 2, 2, 3),
    "many rows": (2, 3, (50, 40), 4, (3, 3), 1, 1, 1, 1),
    "many rows, stride 2": (2, 3, (131, 51), 4, (5, 5), 2, 2, 1, 1),
    "many channels": (3, 130, (5, 5), 6, (3, 3), 1, 1, 1, 1),
    "many channels of 1x1": (3, 520, (5, 5), 6, (1, 1), 1, 0, 1, 1),
    "many channels made by 1x1": (3, 6, (5, 5), 520, (1, 1), 1, 0, 1, 1),
    "3-d": (2, 3, (4, 5, 6), 4, (3, 3, 3), 1, 1, 1, 1),
    "3-d with stride": (2, 3, (5, 7, 6), 4, (2, 3, 3), (2, 1, 2), (0, 1, 1), 1, 1),
    "3-d, asymmetric and dilated": (1, 2, (7, 8, 9), 3, (2, 3, 2), (1, 2, 1), ((1, 0), (0, 2), (2, 1)), (2, 1, 3), 1),
    "3-d 1x1": (2, 3, (3, 4, 5), 4, (1, 1, 1), 1, 0, 1, 1),
    "3-d groups": (2, 4, (3, 4, 5), 4, (3, 3, 3), 1, 1, 1, 2),
    "3-d depthwise": (2, 3, (4, 5, 9), 6, (2, 3, 3), (1, 2, 1), 1, 1, 3),
    "3-d, rows cut across depth": (1, 2, (5, 25, 23), 3, (3, 3, 3), 1, 1, 1, 1),
}


def arrays(case, dtype=np.float64):
    """x, w, dout and the attributes of a case, with values that differ in every place."""
    batch, channels, size, made, kernel, strides, paddings, dilations, groups = CASES[case]
    rng = np.random.default_rng(len(case))
    rank = len(size)
    pairs = convolution.padding_pairs(paddings, rank)
    out_size = tuple(map(convolution.out_extent, size, kernel, convolution.per_dimension(strides, rank), pairs,
                         convolution.per_dimension(dilations, rank)))
    x = rng.standard_normal((batch, channels) + size).astype(dtype)
    w = rng.standard_normal((made, channels // groups) + kernel).astype(dtype)
    dout = rng.standard_normal((batch, made) + out_size).astype(dtype)
    return x, w, dout, (strides, paddings, dilations, groups)


def definition(x, w, out_shape, strides, paddings, dilations, groups):
    """The sum as books write it, one output position at a time."""
    rank = x.ndim - 2
    strides, dilations = convolution.per_dimension(strides, rank), convolution.per_dimension(dilations, rank)
    before = [pair[0] for pair in convolution.padding_pairs(paddings, rank)]
    out = np.zeros(out_shape)
    read, made = w.shape[1], w.shape[0] // groups
    for position in itertools.product(*map(range, out_shape[2:])):
        for tap in itertools.product(*map(range, w.shape[2:])):
            at = [p * s - b + t * d for p, s, b, t, d in zip(position, strides, before, tap, dilations)]
            if all(0 <= a < size for a, size in zip(at, x.shape[2:])):
                for group in range(groups):
                    seen = x[(slice(None), slice(group * read, (group + 1) * read), *at)]
                    weights = w[(slice(group * made, (group + 1) * made), slice(None), *tap)]
                    out[(slice(None), slice(group * made, (group + 1) * made), *position)] += seen @ weights.T
    return out


def run_all(x, w, dout, attributes, version=lambda kernel: kernel):
    """Output, data gradient and weight gradient; targets start as NaN, so that nothing is left unwritten."""
    out, dx, dw = (np.full_like(like, np.nan) for like in (dout, x, w))
    version(conv_forward)(x, w, out, *attributes)()
    version(conv_backward_data)(dout, w, dx, *attributes)()
    version(conv_backward_weight)(x, dout, dw, *attributes)()
    return out, dx, dw


@pytest.mark.parametrize("case", [case for case in CASES if "many" not in case])
def test_reference_is_the_definition(case):
    x, w, dout, attributes = arrays(case)
    out = np.full_like(dout, np.nan)
    conv_forward.reference(x, w, out, *attributes)()
    np.testing.assert_allclose(out, definition(x, w, out.shape, *attributes), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_the_forward_kernel(case):
    # The output is linear in the data and in the weights, so sum(dout * out) is <dx, x> and <dw, w>, whatever x and w.
    x, w, dout, attributes = arrays(case)
    for version in (lambda kernel: kernel, lambda kernel: kernel.reference):
        out, dx, dw = run_all(x, w, dout, attributes, version)
        other = np.random.default_rng(1).standard_normal(x.shape)
        moved = np.full_like(out, np.nan)
        version(conv_forward)(other, w, moved, *attributes)()
        np.testing.assert_allclose((dout * moved).sum(), (dx * other).sum(), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose((dout * out).sum(), (dw * w).sum(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES)
def test_host_version_equals_the_reference(case, dtype):
    given = arrays(case, dtype)
    close = {"rtol": 1e-4, "atol": 1e-4} if dtype is np.float32 else {"rtol": 1e-10, "atol": 1e-10}
    for mine, plain in zip(run_all(*given), run_all(*given, lambda kernel: kernel.reference)):
        np.testing.assert_allclose(mine, plain, **close)


@pytest.mark.parametrize("case", ["3x3 stride 2", "groups", "asymmetric padding", "3-d with stride"])
def test_device_arrays_are_convolved_on_the_device(case):
    x, w, dout, attributes = arrays(case)
    made = [device.array(np.full_like(like, np.nan)) for like in (dout, x, w)]
    on_device = [device.array(array) for array in (x, w, dout)]
    conv_forward(on_device[0], on_device[1], made[0], *attributes)()
    conv_backward_data(on_device[2], on_device[1], made[1], *attributes)()
    conv_backward_weight(on_device[0], on_device[2], made[2], *attributes)()
    for mine, plain in zip(made, run_all(x, w, dout, attributes)):
        np.testing.assert_allclose(to_host(mine), plain, rtol=1e-10, atol=1e-10)


def test_an_empty_batch_has_a_weight_gradient_of_zero():
    _, w, _, attributes = arrays("3x3 same")
    x, dout, dw = np.empty((0, 4, 9, 8)), np.empty((0, 6, 9, 8)), np.full_like(w, np.nan)
    conv_forward(x, w, dout, *attributes)()
    conv_backward_weight(x, dout, dw, *attributes)()
    assert (dw == 0).all()


@pytest.mark.parametrize("case", CASES)
def test_bits_do_not_depend_on_the_number_of_threads(case):
    given = arrays(case, np.float32)
    results = []
    for count in (1, 2, 3):
        threads.set_threads(count)
        try:
            results.append([made.tobytes() for made in run_all(*given)])
        finally:
            threads.set_threads(None)
    assert results[0] == results[1] == results[2]


def test_arrays_that_are_not_contiguous_are_computed_too():
    x, w, dout, attributes = arrays("3x3 same")
    expected = run_all(x, w, dout, attributes)
    turned = [np.ascontiguousarray(array.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0) for array in (x, w, dout)]
    assert not turned[0].flags.c_contiguous
    for mine, plain in zip(run_all(*turned, attributes), expected):
        np.testing.assert_allclose(mine, plain, rtol=1e-10, atol=1e-10)


def test_a_bound_kernel_reads_the_arrays_anew_at_every_call():
    x, w, dout, attributes = arrays("3x3 same")
    out = np.empty_like(dout)
    run = conv_forward(x, w, out, *attributes)
    run()
    before = out.copy()
    x *= 2
    run()
    np.testing.assert_allclose(out, 2 * before)


def test_an_output_of_the_wrong_shape_is_refused_with_all_shapes():
    x, w, dout, attributes = arrays("3x3 same")
    with pytest.raises(ProgramError, match=r"expected an output \(3, 6, 9, 8\).*got an output \(3, 6, 9, 7\)"):
        conv_forward(x, w, dout[..., :7], *attributes)


def test_paddings_are_understood_in_every_form():
    assert convolution.padding_pairs(2, 2) == ((2, 2), (2, 2))
    assert convolution.padding_pairs([1, 2], 2) == ((1, 1), (2, 2))
    assert convolution.padding_pairs([1, 2, 3, 4], 2) == ((1, 2), (3, 4))
    assert convolution.padding_pairs([(1, 2), (3, 4)], 2) == ((1, 2), (3, 4))
