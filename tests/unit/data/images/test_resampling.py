"""Resized arrays and values between pixels, against plain loops and Pillow."""

import numpy as np
import pytest
from PIL import Image

from fleet_mpi.data.images import resampling
from fleet_mpi.errors import UsageError

RNG = np.random.default_rng(0)
IMAGE = RNG.integers(0, 256, (7, 10, 3), dtype=np.uint8)


def by_hand(image, height, width):
    """Linear interpolation, pixel by pixel."""
    made = np.empty((height, width, 3))
    for row in range(height):
        for column in range(width):
            y = min(max((row + 0.5) * image.shape[0] / height - 0.5, 0), image.shape[0] - 1)
            x = min(max((column + 0.5) * image.shape[1] / width - 0.5, 0), image.shape[1] - 1)
            top, left = min(int(y), image.shape[0] - 2), min(int(x), image.shape[1] - 2)
            down, right = y - top, x - left
            corner = image[top:top + 2, left:left + 2].astype(float)
            made[row, column] = ((corner[0, 0] * (1 - right) + corner[0, 1] * right) * (1 - down)
                                 + (corner[1, 0] * (1 - right) + corner[1, 1] * right) * down)
    return made


@pytest.mark.parametrize("height, width", [(3, 4), (14, 9), (7, 23), (1, 1)])
def test_linear_interpolation(height, width):
    found = resampling.resize(IMAGE, height, width, "bilinear")
    assert found.dtype == np.uint8
    np.testing.assert_allclose(found, by_hand(IMAGE, height, width), atol=0.51)


@pytest.mark.parametrize("method", resampling.METHODS)
def test_every_method_keeps_size_one_and_flat_images(method):
    assert (resampling.resize(IMAGE, 7, 10, method) == IMAGE).all()
    flat = resampling.resize(np.full((5, 6), 37, np.uint8), 11, 4, method)
    assert flat.shape == (11, 4) and (flat == 37).all()


def test_enlarging_is_as_pillow_does_it():
    want = np.asarray(Image.fromarray(IMAGE).resize((20, 21), Image.Resampling.BILINEAR)).astype(int)
    assert abs(resampling.resize(IMAGE, 21, 20, "bilinear").astype(int) - want).max() <= 1


@pytest.mark.parametrize("method", ["bicubic", "lanczos"])
def test_wider_kernels_keep_a_slope_away_from_the_edges(method):
    slope = np.arange(40, dtype=np.float64)[None].repeat(3, 0)
    found = resampling.resize(slope, 3, 80, method)[1, 20:60]
    np.testing.assert_allclose(found, (np.arange(20, 60) + 0.5) / 2 - 0.5, atol=0.05)


def test_area_is_the_mean_of_what_is_covered():
    found = resampling.resize(IMAGE.astype(float), 7, 4, "area")
    wide = IMAGE.astype(float).repeat(2, 1)  # 20 half columns, 5 of them for each of 4
    np.testing.assert_allclose(found, wide.reshape(7, 4, 5, 3).mean(2), atol=1e-9)


def test_nearest_takes_pixels_as_they_are():
    assert (resampling.resize(IMAGE, 14, 20, "nearest") == IMAGE.repeat(2, 0).repeat(2, 1)).all()


@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic"])
def test_at_pixel_centres_a_sample_is_the_pixel(method):
    y, x = np.mgrid[0:7, 0:10] + 0.5
    np.testing.assert_allclose(resampling.sample(IMAGE, y, x, method), IMAGE, atol=1e-9)


def test_an_unknown_method_says_the_known_ones():
    with pytest.raises(UsageError, match="resize: no interpolation 'linear' for numpy arrays; did you mean 'bilinear'"):
        resampling.resize(IMAGE, 3, 3, "linear")
