"""The functions of images: arrays against numpy and against Pillow's own, and both kinds through one door."""

import numpy as np
import pytest
from PIL import Image

from fleet_mpi.data.images import functions as F
from fleet_mpi.errors import UsageError

RNG = np.random.default_rng(1)
ARRAY = RNG.integers(0, 256, (20, 31, 3), dtype=np.uint8)
GREY = RNG.integers(0, 256, (20, 31), dtype=np.uint8)
# Slow changes of colour, so that a pixel beside the right one is nearly right.
SMOOTH = np.stack([*np.meshgrid(np.linspace(20, 220, 40), np.linspace(0, 250, 30)), np.full((30, 40), 90.0)],
                  2).astype(np.uint8)


def difference(found, image):
    """The largest difference of an array from a Pillow image."""
    return abs(found.astype(int) - np.asarray(image).astype(int)).max()


@pytest.mark.parametrize("pixels", [ARRAY, GREY])
@pytest.mark.parametrize("call", [
    F.hflip, F.vflip, lambda img: F.crop(img, 3, 4, 10, 12), lambda img: F.center_crop(img, (8, 11)),
    lambda img: F.pad(img, 2),
    lambda img: F.pad(img, (1, 2), fill=7), lambda img: F.pad(img, [1, 2, 3, 4]), lambda img: F.pad(img, 3, 0, "edge"),
    lambda img: F.pad(img, 3, 0, "reflect"), lambda img: F.pad(img, (1, 2, 3, 4), 0, "symmetric"),
    lambda img: F.adjust_brightness(img, 0.7), lambda img: F.rotate(img, 180)])
def test_arrays_and_pillow_images_give_the_same(pixels, call):
    made = call(Image.fromarray(pixels))
    found = call(pixels)
    assert isinstance(made, Image.Image) and found.dtype == np.uint8
    assert found.shape == np.asarray(made).shape and difference(found, made) <= 1


@pytest.mark.parametrize("angle", [30, -75, 200.5])
@pytest.mark.parametrize("options",
                         [{}, {"expand": True}, {"center": (5, 9)}, {"fill": 255}, {"interpolation": "bilinear"}])
def test_arrays_turn_as_pillow_images_do(angle, options):
    found, made = F.rotate(SMOOTH, angle, **options), np.asarray(F.rotate(Image.fromarray(SMOOTH), angle, **options))
    assert found.shape == made.shape
    apart = abs(found.astype(int) - made.astype(int)).max(axis=2)
    assert (apart <= 12).mean() > 0.97  # but for pixels of the edge, which either counts as outside


def test_a_quarter_turn_is_counter_clockwise():
    assert (F.rotate(ARRAY, 90, expand=True) == np.rot90(ARRAY)).all()


@pytest.mark.parametrize("factor", [-0.5, -0.2, 0.1, 0.4])
def test_hues_move_as_pillow_moves_them(factor):
    # Pillow counts hues in 256 steps, of up to 6 in a colour.
    assert difference(F.adjust_hue(ARRAY, factor), F.adjust_hue(Image.fromarray(ARRAY), factor)) <= 14


def test_hues_by_hand():
    colours = np.array([[[255, 0, 0], [10, 250, 30], [9, 9, 9]]], np.uint8)
    third = F.adjust_hue(colours, 1 / 3)
    assert third.tolist() == [[[0, 255, 0], [30, 10, 250], [9, 9, 9]]]
    assert (F.adjust_hue(colours, 0.0) == colours).all() and (F.adjust_hue(GREY, 0.3) == GREY).all()
    assert (F.adjust_hue(colours, 0.5) == F.adjust_hue(colours, -0.5)).all()


def test_brightness_and_contrast_of_arrays_by_the_original_tables():
    assert F.adjust_brightness(np.array([[3, 200]], np.uint8), 1.5).tolist() == [[4, 255]]
    assert F.adjust_contrast(np.array([[74, 0, 100]], np.uint8), 2.0).tolist() == [[74, 0, 126]]
    assert F.adjust_brightness(np.array([[0.5, 300.0]], np.float32), 1.0).tolist() == [[0.5, 255.0]]


@pytest.mark.parametrize("kind", [np.asarray, Image.fromarray])
def test_saturation_and_grey(kind):
    grey = F.to_grayscale(kind(ARRAY))
    want = np.rint(ARRAY @ [0.299, 0.587, 0.114])
    assert abs(np.asarray(grey).reshape(20, 31) - want).max() <= 1
    three = np.asarray(F.to_grayscale(kind(ARRAY), 3))
    assert three.shape == (20, 31, 3) and (three == three[..., :1]).all()
    assert abs(np.asarray(F.adjust_saturation(kind(ARRAY), 0.0)).astype(int) - want[..., None]).max() <= 1
    assert (np.asarray(F.adjust_saturation(kind(ARRAY), 1.0)) == ARRAY).all()


@pytest.mark.parametrize("kind", [np.asarray, Image.fromarray])
def test_a_single_size_is_that_of_the_shorter_edge(kind):
    assert np.asarray(F.resize(kind(ARRAY), 10)).shape == (10, 15, 3)
    assert np.asarray(F.resize(kind(ARRAY.swapaxes(0, 1).copy()), 10)).shape == (15, 10, 3)
    assert np.asarray(F.resize(kind(ARRAY), (9, 8), "nearest")).shape == (9, 8, 3)
    assert (np.asarray(F.resize(kind(ARRAY), 20)) == ARRAY).all()


@pytest.mark.parametrize("kind", [np.asarray, Image.fromarray])
def test_a_tensor_is_a_numpy_array_with_channels_first(kind):
    found = F.to_tensor(kind(ARRAY))
    assert isinstance(found, np.ndarray) and found.dtype == np.float32
    np.testing.assert_allclose(found, ARRAY.transpose(2, 0, 1) / 255, atol=1e-7)
    assert F.to_tensor(kind(GREY)).shape == (1, 20, 31) and F.to_tensor(kind(GREY), "HWC").shape == (20, 31, 1)


def test_only_bytes_are_scaled():
    assert F.to_tensor(np.full((2, 2, 1), 200.0, np.float32)).max() == 200
    assert F.to_tensor(Image.fromarray(np.full((2, 2), 70000, np.int32))).max() == 70000
    assert F.to_tensor(Image.new("1", (2, 2), 1)).max() == 1


def test_normalize_by_channel():
    found = F.normalize(ARRAY, [1, 2, 3], [2, 2, 4], data_format="HWC")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, (ARRAY.astype("f4") - [1, 2, 3]) / [2, 2, 4], rtol=1e-6)
    first = F.normalize(ARRAY.transpose(2, 0, 1), [1, 2, 3], [2, 2, 4], to_rgb=True)
    np.testing.assert_allclose(first[0], (ARRAY[..., 2].astype("f4") - 1) / 2, rtol=1e-6)
    assert F.normalize(Image.fromarray(ARRAY), [0.0], [1.0], "HWC").dtype == np.float32
    with pytest.raises(UsageError, match=r"in the order CHW .* got the shape \(20, 31, 3\), 2 and 1"):
        F.normalize(ARRAY, [1, 2], [1])


@pytest.mark.parametrize("call, sentence", [
    (lambda: F.hflip("cat.jpg"), "hflip: expected a numpy array .* or a Pillow image, got str"),
    (lambda: F.vflip(np.zeros((1, 3, 4, 4))), r"got an array of shape \(1, 3, 4, 4\)"),
    (lambda: F.to_tensor(ARRAY, "NCHW"), "to_tensor: expected the data_format CHW or HWC, got 'NCHW'"),
    (lambda: F.adjust_hue(ARRAY, 0.6), "adjust_hue: expected a hue_factor from -0.5 to 0.5, got 0.6"),
    (lambda: F.pad(ARRAY, (1, 2, 3)), "padding of 1, 2 or 4 numbers"),
    (lambda: F.pad(ARRAY, 1, 0, "wrap"), "got 'wrap'"),
    (lambda: F.resize(ARRAY, (1, 2, 3)), r"resize: size: expected \(height, width\) or one number"),
    (lambda: F.resize(Image.fromarray(ARRAY), 5, "area"), "no interpolation 'area' for Pillow images"),
    (lambda: F.to_grayscale(ARRAY, 2), "expected 1 or 3 output channels, got 2"),
    (lambda: F.adjust_saturation(np.zeros((2, 2, 4), np.uint8), 1), "1 or 3 channels"),
    (lambda: F.center_crop(ARRAY, 40), "pad the image first")])
def test_what_cannot_be_done_is_said(call, sentence):
    with pytest.raises(UsageError, match=sentence):
        call()
