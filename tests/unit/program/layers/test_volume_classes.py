"""Classes and functions of volumes (volume_classes, functional_volumes), and transposed convolutions of lines."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import functional_volumes, nn, volume_classes
from fleet_mpi.program.layers.data import static_data

RNG = np.random.default_rng(0)
VOLUMES = RNG.normal(size=(2, 4, 4, 6, 2)).astype("float32")
HALVES = VOLUMES.reshape(2, 4, 2, 2, 3, 2, 1, 2)


def run(*fetches, **feed):
    executor = Executor()
    executor.run(default_startup_program())
    return executor.run(feed=feed or {"x": VOLUMES}, fetch_list=list(fetches))


def volumes():
    return static_data("x", [None, 4, 4, 6, 2])


def parameter(name):
    return default_main_program().global_block().var(name)


@pytest.mark.parametrize("groups, stride, padding", [(1, 1, 0), (2, [2, 1, 1], 1)])
def test_a_convolution_is_that_of_the_layer_with_its_weights(groups, stride, padding):
    made = nn.conv3d(volumes(), 6, 2, stride, padding, groups=groups)
    found, want = run(functional_volumes.conv3d(volumes(), parameter("conv3d_0.w_0"), parameter("conv3d_0.b_0"), stride,
                                                padding, groups=groups), made)
    np.testing.assert_array_equal(found, want)


def test_the_class_makes_its_weights():
    layer = volume_classes.Conv3D(4, 6, [1, 2, 2], groups=2)
    found, = run(layer(volumes()))
    assert layer.weight.shape == (6, 2, 1, 2, 2) and layer.bias.shape == (6,)
    weight = global_scope().array(layer.weight.name)
    want = (VOLUMES[:, :2, 0, :2, :2] * weight[0, :, 0]).sum((1, 2, 3))
    np.testing.assert_allclose(found[:, 0, 0, 0, 0], want, rtol=1e-4, atol=1e-5)


def test_a_border_other_than_zeros():
    layer = volume_classes.Conv3D(4, 1, 3, padding=1, padding_mode="circular", bias_attr=False)
    found, = run(layer(volumes()))
    wide = np.pad(VOLUMES, ((0, 0), (0, 0), (1, 1), (1, 1), (1, 1)), "wrap")
    want = (wide[:, :, :3, :3, :3] * global_scope().array(layer.weight.name)).sum((1, 2, 3, 4))
    assert found.shape == (2, 1, 4, 6, 2)
    np.testing.assert_allclose(found[:, 0, 0, 0, 0], want, rtol=1e-4, atol=1e-5)


def test_transposed_convolutions_enlarge():
    line = static_data("line", [None, 4, 6])
    cubes, lines = volume_classes.Conv3DTranspose(4, 3, 2, stride=2), volume_classes.Conv1DTranspose(4, 3, 2, stride=3)
    wider = volume_classes.Conv1DTranspose(4, 2, 2, stride=3, output_padding=2, data_format="NCL")
    values = VOLUMES[:, :, 0, :, 0].copy()
    found = run(cubes(volumes()), lines(line), wider(line), lines(line, output_size=[18]), x=VOLUMES, line=values)
    assert [one.shape for one in found] == [(2, 3, 8, 12, 4), (2, 3, 17), (2, 2, 19), (2, 3, 18)]
    weight = global_scope().array(cubes.weight.name)
    want = np.einsum("nc,co->no", VOLUMES[:, :, 0, 0, 0], weight[:, :, 0, 0, 0])
    np.testing.assert_allclose(found[0][:, :, 0, 0, 0], want, rtol=1e-4, atol=1e-5)
    flat = global_scope().array(lines.weight.name)
    np.testing.assert_allclose(found[1][:, :, 3:5], np.einsum("nc,col->nol", values[:, :, 1], flat), rtol=1e-4,
                               atol=1e-5)


def test_pools():
    x = volumes()
    found = run(volume_classes.MaxPool3D(2)(x), volume_classes.AvgPool3D(2)(x),
                volume_classes.AdaptiveAvgPool3D([2, 3, 1])(x),
                volume_classes.AdaptiveMaxPool3D([2, 3, 1])(x), volume_classes.AdaptiveAvgPool3D([None, 1, 1])(x),
                functional_volumes.avg_pool3d(x, 2, divisor_override=4))
    largest, mean = HALVES.max((3, 5, 7)), HALVES.mean((3, 5, 7))
    wanted = [largest, mean, mean, largest, VOLUMES.mean((3, 4), keepdims=True), mean * 2]
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_where_the_maxima_lie():
    pooled, places = run(*volume_classes.MaxPool3D(2, return_mask=True)(volumes()))
    flat = np.take_along_axis(VOLUMES.reshape(2, 4, -1), places.reshape(2, 4, -1), 2)
    np.testing.assert_array_equal(flat, pooled.reshape(2, 4, -1))


def test_a_border():
    found, = run(volume_classes.Pad3D([1, 0, 0, 2, 1, 1], value=3.0)(volumes()))
    np.testing.assert_array_equal(found, np.pad(VOLUMES, ((0, 0), (0, 0), (1, 1), (0, 2), (1, 0)), constant_values=3))


def test_what_does_not_fit_is_refused():
    for call, words in ((lambda: volume_classes.Conv3D(4, 4, 3, groups=3), "multiple of groups"),
                        (lambda: volume_classes.Conv3D(4, 4, 3, padding="SAME", padding_mode="reflect"), "in numbers"),
                        (lambda: functional_volumes.max_pool3d(volumes(), 2, return_mask=True, data_format="NDHWC"),
                         "channel second")):
        with pytest.raises(UsageError, match=words):
            call()
