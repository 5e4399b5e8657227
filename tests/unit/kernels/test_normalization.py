"""Batch norm and layer norm: the definition, the gradients by differences, the host's version, equal bits."""

import numpy as np
import pytest

from fleet_mpi.arrays import to_host
from fleet_mpi.errors import ProgramError
from fleet_mpi.kernels import threads
from fleet_mpi.kernels.reference.normalization import (
    batch_norm_backward,
    batch_norm_forward,
    batch_norm_inference,
    layer_norm_backward,
    layer_norm_forward,
)
from fleet_mpi.testing import device

SHAPES = {  # shape, channel axis
    "NCHW": ((3, 4, 5, 6), 1),
    "NHWC": ((3, 5, 6, 4), -1),
    "NC": ((9, 37), 1),
    "NCDHW": ((2, 3, 2, 3, 4), 1),
    "one image": ((1, 3, 4, 4), 1),
    "large planes": ((2, 2, 90, 101), 1),
    "many channels": ((2, 67, 40, 41), 1),
    "many rows of columns": ((2500, 37), -1),
}
MOMENTUM, EPSILON = 0.8, 1e-3
VERSIONS = {"host": lambda kernel: kernel, "reference": lambda kernel: kernel.reference}


def batch_inputs(case, dtype):
    shape, axis = SHAPES[case]
    rng = np.random.default_rng(len(case))
    x = (rng.standard_normal(shape) * 2 + 1).astype(dtype)
    dout = rng.standard_normal(shape).astype(dtype)
    scale, bias, running_mean, running_var = rng.uniform(0.5, 1.5, (4, shape[axis])).astype(dtype)
    return x, dout, scale, bias, running_mean, running_var, axis


def batch_norm(version, case, dtype, relu=False, frozen=False):
    """Everything that the batch norm kernels make, by name; targets start as NaN."""
    x, dout, scale, bias, running_mean, running_var, axis = batch_inputs(case, dtype)
    out, dx = np.full_like(x, np.nan), np.full_like(x, np.nan)
    mean, inv_std, dscale, dbias = (np.full_like(scale, np.nan) for _ in range(4))
    if frozen:
        mean = running_mean
        version(batch_norm_inference)(x, scale, bias, running_mean, running_var, out, inv_std, EPSILON, relu, axis)()
    else:
        version(batch_norm_forward)(x, scale, bias, out, mean, inv_std, running_mean, running_var,
                                    MOMENTUM, EPSILON, relu, axis)()
    version(batch_norm_backward)(x, dout, out if relu else None, scale, mean, inv_std, dx, dscale, dbias,
                                 frozen, axis)()
    return {"out": out, "mean": mean, "inv_std": inv_std, "running_mean": running_mean, "running_var": running_var,
            "dx": dx, "dscale": dscale, "dbias": dbias}


def assert_same(mine, plain, dtype):
    close = {"rtol": 2e-4, "atol": 2e-5} if dtype is np.float32 else {"rtol": 1e-9, "atol": 1e-10}
    for name in plain:
        np.testing.assert_allclose(mine[name], plain[name], **close, err_msg=name)


def difference_quotient(function, array, step=1e-5):
    """The gradient of a scalar function by central differences, changing ``array`` in place and back."""
    gradient = np.empty_like(array)
    for at in np.ndindex(array.shape):
        kept = array[at]
        array[at] = kept + step
        above = function()
        array[at] = kept - step
        gradient[at] = (above - function()) / (2 * step)
        array[at] = kept
    return gradient


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", SHAPES)
def test_output_has_the_asked_mean_and_deviation_in_every_channel(case, version):
    x, _, scale, bias, running_mean, running_var, axis = batch_inputs(case, np.float64)
    made = batch_norm(VERSIONS[version], case, np.float64)
    others = tuple(i for i in range(x.ndim) if i != axis % x.ndim)
    variance = x.var(axis=others)
    np.testing.assert_allclose(made["out"].mean(axis=others), bias, atol=1e-9)
    np.testing.assert_allclose(made["out"].var(axis=others), scale ** 2 * variance / (variance + EPSILON))
    np.testing.assert_allclose(made["mean"], x.mean(axis=others), atol=1e-12)
    np.testing.assert_allclose(made["inv_std"], 1 / np.sqrt(variance + EPSILON))
    np.testing.assert_allclose(made["running_mean"], 0.8 * running_mean + 0.2 * x.mean(axis=others))
    np.testing.assert_allclose(made["running_var"], 0.8 * running_var + 0.2 * variance)  # the biased variance


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", ["NCHW", "NHWC", "NC"])
def test_batch_norm_gradients_are_difference_quotients(case, version, relu, frozen):
    version = VERSIONS[version]
    x, dout, scale, bias, running_mean, running_var, axis = batch_inputs(case, np.float64)
    out = np.empty_like(x)
    if frozen:
        run = version(batch_norm_inference)(x, scale, bias, running_mean, running_var, out, None, EPSILON, relu, axis)
    else:
        spare = [np.empty_like(scale) for _ in range(2)] + [np.ones_like(scale) for _ in range(2)]
        run = version(batch_norm_forward)(x, scale, bias, out, *spare, MOMENTUM, EPSILON, relu, axis)

    def loss():
        run()
        return (out * dout).sum()

    made = batch_norm(version, case, np.float64, relu, frozen)
    for name, array in (("dx", x), ("dscale", scale), ("dbias", bias)):
        np.testing.assert_allclose(made[name], difference_quotient(loss, array), rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("case", SHAPES)
def test_host_batch_norm_equals_the_reference(case, relu, frozen, dtype):
    mine = batch_norm(VERSIONS["host"], case, dtype, relu, frozen)
    assert_same(mine, batch_norm(VERSIONS["reference"], case, dtype, relu, frozen), dtype)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("frozen", [False, True])
def test_device_arrays_are_normalised_on_the_device(relu, frozen):
    expected = batch_norm(VERSIONS["host"], "NCHW", np.float64, relu, frozen)
    *arrays, axis = batch_inputs("NCHW", np.float64)
    x, dout, scale, bias, running_mean, running_var = (device.array(array) for array in arrays)
    made = {name: device.array(np.zeros_like(array)) for name, array in expected.items()}
    if frozen:
        made["mean"] = running_mean
        batch_norm_inference(x, scale, bias, running_mean, running_var, made["out"], made["inv_std"], EPSILON, relu,
                             axis)()
    else:
        batch_norm_forward(x, scale, bias, made["out"], made["mean"], made["inv_std"], running_mean, running_var,
                           MOMENTUM, EPSILON, relu, axis)()
    made |= {"running_mean": running_mean, "running_var": running_var}
    batch_norm_backward(x, dout, made["out"] if relu else None, scale, made["mean"], made["inv_std"], made["dx"],
                        made["dscale"], made["dbias"], frozen, axis)()
    assert_same({name: to_host(array) for name, array in made.items()}, expected, np.float64)


@pytest.mark.parametrize("affine", [True, False])
def test_rows_on_the_device_are_normalised_there(affine):
    expected, (_, _, x, scale, bias, dout) = layer_norm(VERSIONS["host"], "sequences", np.float64, affine)
    made = {name: device.array(np.zeros_like(array)) for name, array in expected.items()}
    x, dout, scale, bias = (None if array is None else device.array(array) for array in (x, dout, scale, bias))
    layer_norm_forward(x, scale, bias, made["out"], made["mean"], made["inv_std"], EPSILON, 2)()
    layer_norm_backward(x, dout, scale, made["mean"], made["inv_std"], made["dx"], made.get("dscale"),
                        made.get("dbias"), 2)()
    assert_same({name: to_host(array) for name, array in made.items()}, expected, np.float64)


@pytest.mark.parametrize("case", SHAPES)
def test_bits_of_batch_norm_do_not_depend_on_the_number_of_threads(case):
    results = []
    for count in (1, 2):
        threads.set_threads(count)
        try:
            made = batch_norm(VERSIONS["host"], case, np.float32, relu=True)
            results.append({name: array.tobytes() for name, array in made.items()})
        finally:
            threads.set_threads(None)
    assert results[0] == results[1]


def test_the_data_gradient_may_overwrite_that_of_the_output():
    x, dout, scale, *_ = batch_inputs("NCHW", np.float64)
    expected = batch_norm(VERSIONS["host"], "NCHW", np.float64, relu=True)
    dscale, dbias = np.empty_like(scale), np.empty_like(scale)
    batch_norm_backward(x, dout, expected["out"], scale, expected["mean"], expected["inv_std"], dout, dscale, dbias,
                        False, 1)()
    np.testing.assert_allclose(dout, expected["dx"], rtol=1e-12)


def test_large_means_do_not_spoil_the_variance():
    x = (np.random.default_rng(0).standard_normal((4, 1, 64, 64)) + 1000).astype(np.float32)
    one = np.ones(1, np.float32)
    out, mean, inv_std = np.empty_like(x), np.empty_like(one), np.empty_like(one)
    batch_norm_forward(x, one, one * 0, out, mean, inv_std, one.copy(), one.copy(), 0.9, 0.0, False, 1)()
    np.testing.assert_allclose(1 / inv_std[0], x.astype(np.float64).std(), rtol=1e-4)


def test_a_nan_is_not_hidden_by_relu():
    one = np.ones(1, np.float32)
    x = np.array([[[1.0, np.nan]]], np.float32)
    for version in VERSIONS.values():
        out = np.zeros_like(x)
        version(batch_norm_inference)(x, one, one, one, one, out, None, 0.0, True, 1)()
        assert np.isnan(out[0, 0, 1]) and not np.isnan(out[0, 0, 0])


def test_statistics_of_another_length_are_refused_by_name():
    x, _, scale, bias, *_ = batch_inputs("NCHW", np.float32)
    with pytest.raises(ProgramError, match="batch norm over 4 channels: expected mean of that length"):
        batch_norm_inference(x, scale, bias, np.ones(5, np.float32), scale, x.copy(), None, 0.1, False, 1)


ROWS = {"vectors": ((6, 11), 1), "sequences": ((3, 5, 8), 2), "images": ((3, 4, 5), 1), "many": ((300, 300), 1)}


def layer_norm(version, case, dtype, affine=True):
    """Everything that the layer norm kernels make, and the inputs."""
    shape, begin = ROWS[case]
    rng = np.random.default_rng(len(case))
    x, dout = rng.standard_normal((2,) + shape).astype(dtype)
    columns, rows = int(np.prod(shape[begin:])), int(np.prod(shape[:begin]))
    scale, bias = rng.uniform(0.5, 1.5, (2, columns)).astype(dtype) if affine else (None, None)
    out, dx = np.full_like(x, np.nan), np.full_like(x, np.nan)
    mean, inv_std = np.full(rows, np.nan, dtype), np.full(rows, np.nan, dtype)
    dscale, dbias = np.full((2, columns), np.nan, dtype) if affine else (None, None)
    run = version(layer_norm_forward)(x, scale, bias, out, mean, inv_std, EPSILON, begin)
    run()
    version(layer_norm_backward)(x, dout, scale, mean, inv_std, dx, dscale, dbias, begin)()
    made = {"out": out, "mean": mean, "inv_std": inv_std, "dx": dx}
    if affine:
        made |= {"dscale": dscale, "dbias": dbias}
    return made, (run, out, x, scale, bias, dout)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", [case for case in ROWS if case != "many"])
def test_layer_norm_is_its_definition_and_its_gradients_are_difference_quotients(case, version, affine):
    made, (run, out, x, scale, bias, dout) = layer_norm(VERSIONS[version], case, np.float64, affine)
    rows = x.reshape(len(made["mean"]), -1)
    expected = (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + EPSILON)
    if affine:
        expected = expected * scale + bias
    np.testing.assert_allclose(made["out"].reshape(rows.shape), expected, atol=1e-12)

    def loss():
        run()
        return (out * dout).sum()

    for name, array in (("dx", x), ("dscale", scale), ("dbias", bias)):
        if name in made:
            np.testing.assert_allclose(made[name], difference_quotient(loss, array), rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("case", ROWS)
def test_host_layer_norm_equals_the_reference(case, affine, dtype):
    mine, _ = layer_norm(VERSIONS["host"], case, dtype, affine)
    assert_same(mine, layer_norm(VERSIONS["reference"], case, dtype, affine)[0], dtype)


def test_bits_of_layer_norm_do_not_depend_on_the_number_of_threads():
    results = []
    for count in (1, 2):
        threads.set_threads(count)
        try:
            made, _ = layer_norm(VERSIONS["host"], "many", np.float32)
            results.append({name: array.tobytes() for name, array in made.items()})
        finally:
            threads.set_threads(None)
    assert results[0] == results[1]
