"""Classes and functions of lines and images (image_classes, functional_lines, functional_images) against numpy."""

import numpy as np
import pytest

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_startup_program
from fleet_mpi.program.layers import functional_images, functional_lines, functional_nn, image_classes
from fleet_mpi.program.layers.data import static_data
from fleet_mpi.program.layers.tensor import create_parameter

RNG = np.random.default_rng(0)
LINES = RNG.normal(size=(2, 4, 6)).astype("float32")
IMAGES = RNG.normal(size=(2, 4, 6, 4)).astype("float32")


def run(*fetches, **feed):
    executor = Executor()
    executor.run(default_startup_program())
    return executor.run(feed=feed, fetch_list=list(fetches))


def lines():
    return static_data("x", [None, 4, 6])


def images():
    return static_data("x", [None, 4, 6, 4])


def test_pools_of_lines():
    x = lines()
    found = run(image_classes.MaxPool1D(2)(x), image_classes.AvgPool1D(3, stride=1, padding=1, exclusive=False)(x),
                image_classes.AdaptiveAvgPool1D(3)(x), image_classes.AdaptiveMaxPool1D(2)(x), x=LINES)
    wide = np.pad(LINES, ((0, 0), (0, 0), (1, 1)))
    wanted = [LINES.reshape(2, 4, 3, 2).max(3), np.stack([wide[:, :, i:i + 3].mean(2) for i in range(6)], 2),
              LINES.reshape(2, 4, 3, 2).mean(3), LINES.reshape(2, 4, 2, 3).max(3)]
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_norms_within_a_sample():
    x = images()
    found = run(image_classes.GroupNorm(2, 4)(x), image_classes.InstanceNorm2D(4)(x),
                image_classes.LocalResponseNorm(3, alpha=0.3)(x), x=IMAGES)
    for got, rows in zip(found[:2], (4, 8)):
        np.testing.assert_allclose(got.reshape(rows, -1).std(1), 1, rtol=1e-3)
    base = 1 + 0.1 * (IMAGES[:, :3] ** 2).sum(1)
    np.testing.assert_allclose(found[2][:, 1], IMAGES[:, 1] / base ** 0.75, rtol=1e-4)


def test_a_weight_is_scaled_by_vectors_that_the_layer_keeps():
    layer, weight = image_classes.SpectralNorm([4, 3], power_iters=100), create_parameter([4, 3], "float32")
    one, other, value = run(layer(weight), layer(weight), weight)
    np.testing.assert_allclose(one, value / np.linalg.norm(value, 2), rtol=1e-3)
    np.testing.assert_array_equal(one, other)
    assert len(layer.parameters()) == 2


def test_sizes_and_borders():
    x, line = images(), static_data("line", [None, 4, 6])
    pad = functional_images.pad
    cases = {
        image_classes.Upsample(scale_factor=2)(x): IMAGES.repeat(2, 2).repeat(2, 3),
        image_classes.UpsamplingNearest2D(scale_factor=[2, 2])(x): IMAGES.repeat(2, 2).repeat(2, 3),
        image_classes.UpsamplingBilinear2D([6, 4])(x): IMAGES,
        image_classes.PixelShuffle(2)(x):
            IMAGES.reshape(2, 1, 2, 2, 6, 4).transpose(0, 1, 4, 2, 5, 3).reshape(2, 1, 12, 8),
        image_classes.Pad2D([1, 2, 3, 0], value=5.0)(x): np.pad(IMAGES, ((0, 0), (0, 0), (3, 0), (1, 2)),
                                                                constant_values=5),
        image_classes.Pad2D(1, "reflect")(x): np.pad(IMAGES, ((0, 0), (0, 0), (1, 1), (1, 1)), "reflect"),
        image_classes.Pad1D([2, 1], "replicate")(line): np.pad(LINES, ((0, 0), (0, 0), (2, 1)), "edge"),
        pad(x, [1, 0, 0, 0, 0, 0, 0, 2]): np.pad(IMAGES, ((1, 0), (0, 0), (0, 0), (0, 2))),
        pad(x, [1, 2], data_format="NHWC"): np.pad(IMAGES, ((0, 0), (0, 0), (1, 2), (0, 0))),
    }
    for (var, want), got in zip(cases.items(), run(*cases, x=IMAGES, line=LINES)):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=var.name)


def test_angles_and_bilinear_forms():
    one, other = static_data("one", [None, 4]), static_data("other", [None, 4])
    layer = image_classes.Bilinear(4, 4, 3)
    a, b = LINES[:, :, 0], LINES[:, :, 1]
    cosine, form = run(image_classes.CosineSimilarity(axis=1)(one, other), layer(one, other), one=a, other=b)
    np.testing.assert_allclose(cosine, (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1),
                               rtol=1e-5)
    weight = global_scope().array(layer.weight.name)
    np.testing.assert_allclose(form, np.einsum("bi,kij,bj->bk", a, weight, b), rtol=1e-4, atol=1e-5)


def test_what_is_not_there_says_so():
    x, line = images(), static_data("line", [None, 4, 6])
    for call in (lambda: functional_images.instance_norm(x, use_input_stats=False),
                 lambda: image_classes.InstanceNorm2D(4, data_format="NHWC")):
        with pytest.raises(NotBuilt):
            call()
    for call in (lambda: functional_lines.conv1d(x, x, data_format="NCHW"), lambda: functional_images.pad(x, [1, 1, 1]),
                 lambda: functional_images.pad(x, [1, 1, 1, 1], "mirror"),
                 lambda: functional_images.interpolate(x, scale_factor=[1, 2, 3]),
                 lambda: functional_images.pixel_shuffle(x, 2, "HWC"),
                 lambda: functional_lines.max_pool1d(line, [2, 2])):
        with pytest.raises(UsageError, match="expected"):
            call()


@pytest.mark.parametrize("mode, plain", [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
def test_borders_of_lines_images_and_volumes(mode, plain):
    line, x = static_data("line", [None, 4, 6]), images()
    volume = static_data("volume", [None, 4, 3, 2, 4])
    found = run(functional_images.pad(line, [2, 1], mode, data_format="NCL"),
                functional_images.pad(x, [1, 2, 0, 3], mode),
                functional_images.pad(x, [1, 0, 2, 1], mode, data_format="NHWC"),
                functional_images.pad(volume, [1, 2, 0, 1, 1, 0], mode, data_format="NCDHW"),
                x=IMAGES, line=LINES, volume=IMAGES.reshape(2, 4, 3, 2, 4))
    none, volumes = (0, 0), IMAGES.reshape(2, 4, 3, 2, 4)
    wanted = [np.pad(LINES, (none, none, (2, 1)), plain), np.pad(IMAGES, (none, none, (0, 3), (1, 2)), plain),
              np.pad(IMAGES, (none, (2, 1), (1, 0), none), plain),
              np.pad(volumes, (none, none, (1, 0), (0, 1), (1, 2)), plain)]
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_sizes_by_a_factor_for_each_dimension_by_area_and_cubic():
    x = images()
    found = run(functional_images.interpolate(x, scale_factor=[1, 2]),
                functional_images.interpolate(x, [3, 2], mode="area"),
                functional_images.interpolate(x, [6, 4], mode="bicubic", align_corners=True), x=IMAGES)
    np.testing.assert_array_equal(found[0], IMAGES.repeat(2, 3))
    np.testing.assert_allclose(found[1], IMAGES.reshape(2, 4, 3, 2, 2, 2).mean((3, 5)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[2], IMAGES, rtol=1e-5, atol=1e-6)


def test_pixels_of_channels_that_come_last():
    x = images()
    turned = static_data("turned", [None, 6, 4, 4])
    found, want = run(functional_images.pixel_shuffle(turned, 2, "NHWC"), functional_images.pixel_shuffle(x, 2),
                      x=IMAGES,
                      turned=IMAGES.transpose(0, 2, 3, 1).copy())
    np.testing.assert_array_equal(found, want.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
def test_a_response_norm_of_an_even_number_of_channels(data_format):
    found, = run(functional_images.local_response_norm(images(), 2, alpha=0.5, beta=0.5, k=2.0,
                                                       data_format=data_format),
                 x=IMAGES)
    squares = np.moveaxis(IMAGES, 1 if data_format == "NCHW" else 3, 0) ** 2
    wide = np.concatenate([np.zeros_like(squares[:1]), squares])
    base = np.moveaxis(2 + 0.5 * (wide[:-1] + wide[1:]) / 2, 0, 1 if data_format == "NCHW" else 3)
    np.testing.assert_allclose(found, IMAGES / np.sqrt(base), rtol=1e-4, atol=1e-5)


def test_where_the_maxima_of_lines_and_images_lie():
    x, line = images(), static_data("line", [None, 4, 6])
    found = run(*functional_lines.max_pool1d(line, 2, return_mask=True),
                *functional_lines.adaptive_max_pool1d(line, 3, return_mask=True),
                *functional_nn.max_pool2d(x, 2, return_mask=True),
                *functional_nn.adaptive_max_pool2d(x, [None, 1], return_mask=True), x=IMAGES, line=LINES)
    for pooled, places in zip(found[::2], found[1::2]):
        source = (LINES if pooled.ndim == 3 else IMAGES).reshape(2, 4, -1)
        np.testing.assert_array_equal(np.take_along_axis(source, places.reshape(2, 4, -1), 2), pooled.reshape(2, 4, -1))
    np.testing.assert_array_equal(found[0], LINES.reshape(2, 4, 3, 2).max(3))
    np.testing.assert_array_equal(found[6], IMAGES.max(3, keepdims=True))


def test_sums_of_windows_over_another_number():
    found, = run(functional_nn.avg_pool2d(images(), 2, divisor_override=3), x=IMAGES)
    np.testing.assert_allclose(found, IMAGES.reshape(2, 4, 3, 2, 2, 2).sum((3, 5)) / 3, rtol=1e-5, atol=1e-6)
