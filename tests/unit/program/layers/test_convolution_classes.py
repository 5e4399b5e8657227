"""Convolutions and their transposes as classes, in one, two and three dimensions, against numpy."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers import convolution_classes, functional_lines, functional_volumes, nn
from fleet_mpi.program.layers.data import static_data

RNG = np.random.default_rng(0)
LINES = RNG.normal(size=(2, 4, 6)).astype("float32")
IMAGES = RNG.normal(size=(2, 4, 6, 4)).astype("float32")
VOLUMES = RNG.normal(size=(2, 4, 4, 6, 2)).astype("float32")


def run(*fetches, **feed):
    executor = Executor()
    executor.run(default_startup_program())
    return executor.run(feed=feed, fetch_list=list(fetches))


def like(array):
    """A variable to feed ``x`` with arrays of this shape."""
    return static_data("x", [None, *array.shape[1:]])


def parameter(name):
    return default_main_program().global_block().var(name)


@pytest.mark.parametrize("stride, padding, groups", ((1, 0, 1), (2, 1, 1), (1, (1, 0), 3)))
def test_conv2d_filters_images(stride, padding, groups):
    array = RNG.standard_normal((2, 3, 6, 5)).astype("float32")
    layer = convolution_classes.Conv2D(3, 6, (3, 2), stride, padding, groups=groups)
    found, = run(layer(like(array)), x=array)
    weight, bias = global_scope().array("conv2d_0.w_0"), global_scope().array("conv2d_0.b_0")
    assert weight.shape == (6, 3 // groups, 3, 2)
    high, wide = (padding, padding) if isinstance(padding, int) else padding
    padded = np.pad(array, ((0, 0), (0, 0), (high, high), (wide, wide)))
    for filter in range(6):
        channels = slice(filter // (6 // groups) * (3 // groups), (filter // (6 // groups) + 1) * (3 // groups))
        for row in range(found.shape[2]):
            for column in range(found.shape[3]):
                window = padded[:, channels, row * stride:row * stride + 3, column * stride:column * stride + 2]
                np.testing.assert_allclose(found[:, filter, row, column],
                                           (window * weight[filter]).sum((1, 2, 3)) + bias[filter], rtol=1e-4,
                                           atol=1e-5)


def test_conv2d_starts_with_the_originals_spread():
    layer = convolution_classes.Conv2D(16, 64, 3)
    run(layer(static_data("x", [None, 16, 4, 4])), x=np.zeros((1, 16, 4, 4), "float32"))
    assert global_scope().array("conv2d_0.w_0").std() == pytest.approx(np.sqrt(2 / (9 * 16)), rel=0.05)


@pytest.mark.parametrize("groups, stride, padding", [(1, 1, 0), (2, 2, 1), (1, 1, [2, 0])])
def test_a_convolution_of_lines(groups, stride, padding):
    layer = convolution_classes.Conv1D(4, 6, 3, stride, padding, groups=groups)
    found, = run(layer(like(LINES)), x=LINES)
    weight, ends = global_scope().array(layer.weight.name), [padding] * 2 if isinstance(padding, int) else padding
    assert weight.shape == (6, 4 // groups, 3)
    wide = np.pad(LINES, ((0, 0), (0, 0), ends))
    for o in range(6):
        part = wide[:, o // (6 // groups) * (4 // groups):][:, :4 // groups]
        want = [(part[:, :, i:i + 3] * weight[o]).sum((1, 2)) for i in range(0, wide.shape[2] - 2, stride)]
        np.testing.assert_allclose(found[:, o], np.stack(want, 1), rtol=1e-4, atol=1e-5)


def test_lines_with_their_channels_last():
    layer = convolution_classes.Conv1D(4, 6, 3, data_format="NLC")
    plain = functional_lines.conv1d(like(LINES), layer.weight, layer.bias)
    found, want = run(layer(static_data("y", [None, 6, 4])), plain, x=LINES, y=LINES.swapaxes(1, 2).copy())
    np.testing.assert_allclose(found, want.swapaxes(1, 2), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("groups, stride, padding", [(1, 1, 0), (2, [2, 1, 1], 1)])
def test_a_convolution_is_that_of_the_layer_with_its_weights(groups, stride, padding):
    made = nn.conv3d(like(VOLUMES), 6, 2, stride, padding, groups=groups)
    weight, bias = parameter("conv3d_0.w_0"), parameter("conv3d_0.b_0")
    found, want = run(functional_volumes.conv3d(like(VOLUMES), weight, bias, stride, padding, groups=groups), made,
                      x=VOLUMES)
    np.testing.assert_array_equal(found, want)


def test_the_class_makes_its_weights():
    layer = convolution_classes.Conv3D(4, 6, [1, 2, 2], groups=2)
    found, = run(layer(like(VOLUMES)), x=VOLUMES)
    assert layer.weight.shape == (6, 2, 1, 2, 2) and layer.bias.shape == (6,)
    weight = global_scope().array(layer.weight.name)
    want = (VOLUMES[:, :2, 0, :2, :2] * weight[0, :, 0]).sum((1, 2, 3))
    np.testing.assert_allclose(found[:, 0, 0, 0, 0], want, rtol=1e-4, atol=1e-5)


def test_transposed_convolutions_enlarge():
    line = static_data("line", [None, 4, 6])
    cubes = convolution_classes.Conv3DTranspose(4, 3, 2, stride=2)
    lines = convolution_classes.Conv1DTranspose(4, 3, 2, stride=3)
    wider = convolution_classes.Conv1DTranspose(4, 2, 2, stride=3, output_padding=2, data_format="NCL")
    values = VOLUMES[:, :, 0, :, 0].copy()
    found = run(cubes(like(VOLUMES)), lines(line), wider(line), lines(line, output_size=[18]), x=VOLUMES, line=values)
    assert [one.shape for one in found] == [(2, 3, 8, 12, 4), (2, 3, 17), (2, 2, 19), (2, 3, 18)]
    weight = global_scope().array(cubes.weight.name)
    want = np.einsum("nc,co->no", VOLUMES[:, :, 0, 0, 0], weight[:, :, 0, 0, 0])
    np.testing.assert_allclose(found[0][:, :, 0, 0, 0], want, rtol=1e-4, atol=1e-5)
    flat = global_scope().array(lines.weight.name)
    np.testing.assert_allclose(found[1][:, :, 3:5], np.einsum("nc,col->nol", values[:, :, 1], flat), rtol=1e-4,
                               atol=1e-5)


def test_a_transposed_convolution_of_images_enlarges():
    layer = convolution_classes.Conv2DTranspose(4, 3, 2, stride=2)
    found, = run(layer(like(IMAGES)), x=IMAGES)
    weight = global_scope().array(layer.weight.name)
    np.testing.assert_allclose(found[:, :, 0, 0], np.einsum("nc,co->no", IMAGES[:, :, 0, 0], weight[:, :, 0, 0]),
                               rtol=1e-4, atol=1e-5)
    assert found.shape == (2, 3, 12, 8)


MODES = [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")]


@pytest.mark.parametrize("mode, plain", MODES)
@pytest.mark.parametrize("rank, padding", [(1, 2), (1, [1, 2]), (2, 1), (2, [2, 1]), (2, [0, 1, 2, 1]), (3, 1),
                                           (3, [2, 3, 1])])
def test_the_border_continues_the_data(rank, padding, mode, plain):
    array = {1: LINES, 2: IMAGES, 3: VOLUMES}[rank]
    layer = getattr(convolution_classes, f"Conv{rank}D")(4, 3, 2, padding=padding, padding_mode=mode)
    ends = [padding] * rank if isinstance(padding, int) else padding
    pairs = [(one, one) for one in ends] if len(ends) == rank else list(zip(ends[::2], ends[1::2]))
    wide = np.pad(array, [(0, 0), (0, 0), *pairs], plain)
    x, y = like(array), static_data("y", [None, *wide.shape[1:]])
    found, want = run(layer(x), type(layer).function(y, layer.weight, layer.bias), x=array, y=wide)
    assert found.shape == want.shape == (2, 3, *(size - 1 for size in wide.shape[2:]))
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("mode, plain", MODES)
def test_the_border_of_images_with_their_channels_last(mode, plain):
    layer = convolution_classes.Conv2D(4, 3, 3, padding=1, padding_mode=mode, data_format="NHWC")
    wide = np.pad(IMAGES, [(0, 0), (0, 0), (1, 1), (1, 1)], plain)
    y = static_data("y", [None, *wide.shape[1:]])
    found, want = run(layer(static_data("x", [None, 6, 4, 4])), type(layer).function(y, layer.weight, layer.bias),
                      x=IMAGES.transpose(0, 2, 3, 1).copy(), y=wide)
    np.testing.assert_allclose(found.transpose(0, 3, 1, 2), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("settings, words", [
    (dict(padding_mode="mirror"), "expected padding_mode zeros, reflect, replicate, circular, got 'mirror'"),
    (dict(padding="SAME", padding_mode="reflect"), "padding_mode 'reflect' needs padding in numbers, got 'SAME'"),
    (dict(groups=3), "expected in_channels to be a multiple of groups, got 4 and 3")])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_what_does_not_fit_is_refused(rank, settings, words):
    with pytest.raises(UsageError, match=f"Conv{rank}D: {words}"):
        getattr(convolution_classes, f"Conv{rank}D")(4, 4, 3, **settings)
