"""Layers of program/layers/images.py, in the forms of the documentation."""

import numpy as np
import pytest

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import default_startup_program
from fleet_mpi.program.layers import images as layers
from fleet_mpi.program.layers.data import data, static_data
from fleet_mpi.program.layers.nn import conv2d
from fleet_mpi.program.layers.tensor import fill_constant

PICTURES = np.random.default_rng(0).normal(size=(2, 4, 6, 4)).astype("float32")


def run(*fetches, **feed):
    return Executor().run(feed=feed, fetch_list=list(fetches))


def test_shapes_known_while_building_and_when_run():
    image = data("image", [4, 6, 4])
    size, factor = fill_constant([1], "int32", 8), fill_constant([1], "float32", 2.0)
    both = fill_constant([2], "int32", 5)
    cases = {
        layers.maxout(image, 2): (2, 6, 4), layers.maxout(image, 2, axis=-1): (4, 6, 2),
        layers.space_to_depth(image, 2): (16, 3, 2), layers.shuffle_channel(image, 2): (4, 6, 4),
        layers.pixel_shuffle(image, 2): (1, 12, 8), layers.temporal_shift(image, 2): (4, 6, 4),
        layers.unfold(image, [3, 3], 1, 1, 1): (36, 24), layers.unfold(image, 2, paddings=[1, 0]): (16, 21),
        layers.image_resize(image, [12, 12]): (4, 12, 12), layers.resize_bilinear(image, scale=0.5): (4, 3, 2),
        layers.resize_nearest(image, out_shape=[size, 3]): (4, 8, 3), layers.resize_nearest(image, both): (4, 5, 5),
        layers.resize_bilinear(image, scale=factor): (4, 12, 8),
        layers.resize_bilinear(image, [3, 3], actual_shape=both): (4, 5, 5),
        layers.image_resize_short(image, 3): (4, 5, 3), layers.random_crop(image, [4, 3, 3]): (4, 3, 3),
        layers.similarity_focus(image, 1, [0]): (4, 6, 4),
    }
    found = run(*cases, image=PICTURES)
    for (var, shape), value in zip(cases.items(), found):
        assert value.shape == (2, *shape), var.name
        assert all(size in (-1, want) for size, want in zip(var.shape[1:], shape)), var.name


def test_an_identity_map_samples_the_image_itself():
    theta, image = static_data("theta", [2, 2, 3]), static_data("image", [2, 4, 6, 4])
    grid = layers.affine_grid(theta, [2, 4, 6, 4])
    by_variable = layers.affine_grid(theta, fill_constant([4], "int32", 4))
    fed = np.tile(np.array([[1, 0, 0], [0, 1, 0]], "float32"), (2, 1, 1))
    one, other, shape = run(layers.grid_sampler(image, grid), layers.grid_sample(image, grid, "nearest", "border"),
                            by_variable, theta=fed, image=PICTURES)
    np.testing.assert_allclose(one, PICTURES, atol=1e-5)
    np.testing.assert_array_equal(other, PICTURES)
    assert shape.shape == (2, 4, 4, 2)


def test_patches_in_a_sequence():
    image = data("image", [4, 6, 4])
    out = layers.im2sequence(image, filter_size=[2, 2], stride=2, padding=[0, 0, 0, 0])
    assert out.shape == (-1, 16) and out.lod_level == 1
    found, = Executor().run(feed={"image": PICTURES}, fetch_list=[out], return_numpy=False)
    assert found.recursive_sequence_lengths() == [[6, 6]]
    np.testing.assert_array_equal(np.array(found)[0], PICTURES[0, :, :2, :2].reshape(-1))


def test_without_offsets_a_deformable_convolution_is_a_convolution():
    image, offset, mask = (static_data(name, [2, count, 6, 4])
                           for name, count in (("image", 4), ("offset", 18), ("mask", 9)))
    attr = ParamAttr(name="shared")
    outs = [layers.deformable_conv(image, offset, mask, 3, 3, padding=1, param_attr=attr),
            layers.deformable_conv(image, offset, None, 3, 3, padding=1, param_attr=attr, modulated=False),
            conv2d(image, 3, 3, padding=1, param_attr=attr)]
    Executor().run(default_startup_program())
    half, whole, plain = run(*outs, image=PICTURES, offset=np.zeros((2, 18, 6, 4), "float32"),
                             mask=np.full((2, 9, 6, 4), 0.5, "float32"))
    np.testing.assert_allclose(whole, plain, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(half * 2, plain, rtol=1e-4, atol=1e-5)


def test_what_is_not_there_says_so():
    image = data("image", [4, 6, 4])
    for call in (lambda: layers.im2sequence(image, input_image_size=image),
                 lambda: layers.image_resize(image, [2, 2], resample="LANCZOS"),
                 lambda: layers.random_crop(image, [2], seed=image)):
        with pytest.raises(NotBuilt, match="got 'LANCZOS'|is not supported"):
            call()
    for call in (lambda: layers.image_resize(image), lambda: layers.image_resize(image, [3]),
                 lambda: layers.image_resize_short(data("other", [4, -1, 4]), 3),
                 lambda: layers.unfold(image, 2, 1, [1] * 3)):
        with pytest.raises(UsageError, match="expected"):
            call()
