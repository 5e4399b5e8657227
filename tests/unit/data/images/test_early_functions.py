"""Images as 1.x prepares them."""

import io

import numpy as np
import pytest
from PIL import Image

from fleet_mpi.data.images import early_functions as images
from fleet_mpi.errors import UsageError

RAMP = np.arange(6 * 8 * 3, dtype=np.uint8).reshape(6, 8, 3)


def png(pixels):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def test_colours_come_in_the_order_blue_green_red_and_greys_without_channels(tmp_path):
    pixels = np.zeros((2, 3, 3), np.uint8) + np.array([200, 100, 50], np.uint8)
    assert images.load_image_bytes(png(pixels))[0, 0].tolist() == [50, 100, 200]
    (tmp_path / "one.png").write_bytes(png(pixels))
    assert images.load_image(str(tmp_path / "one.png"), is_color=False).shape == (2, 3)


@pytest.mark.parametrize("shape, size, wanted",
                         [((6, 8, 3), 3, (3, 4, 3)), ((8, 6, 3), 3, (4, 3, 3)), ((6, 8), 12, (12, 16))])
def test_the_shorter_edge_gets_the_size(shape, size, wanted):
    made = images.resize_short(np.full(shape, 7, np.uint8), size)
    assert made.shape == wanted and (made == 7).all()


def test_crops_and_flips():
    assert (images.center_crop(RAMP, 4) == RAMP[1:5, 2:6]).all()
    np.random.seed(0)
    found = {tuple(images.random_crop(RAMP, 5)[0, 0]) for _ in range(60)}
    assert found == {tuple(RAMP[down, right]) for down in range(2) for right in range(4)}
    assert (images.left_right_flip(RAMP)[:, 0] == RAMP[:, -1]).all()
    for crop in (images.center_crop, images.random_crop):
        with pytest.raises(UsageError, match="at least 9 x 9"):
            crop(RAMP, 9)


def test_channels_come_first():
    assert images.to_chw(RAMP).shape == (3, 6, 8)
    with pytest.raises(UsageError, match="3 dimensions, got shape"):
        images.to_chw(RAMP[0])


def test_the_whole_way_for_testing_and_for_training(tmp_path):
    tested = images.simple_transform(RAMP, 6, 4, is_train=False, mean=[1.0, 2.0, 3.0])
    assert tested.dtype == np.float32 and tested.shape == (3, 4, 4)
    assert (tested == RAMP[1:5, 2:6].transpose(2, 0, 1) - np.array([1, 2, 3]).reshape(3, 1, 1)).all()
    np.random.seed(1)
    trained = {images.simple_transform(RAMP, 6, 6, is_train=True)[0].tobytes() for _ in range(40)}
    assert len(trained) == 6  # three places, mirrored or not
    (tmp_path / "one.png").write_bytes(png(RAMP))
    assert images.load_and_transform(str(tmp_path / "one.png"), 6, 4, False, is_color=False).shape == (4, 4)
