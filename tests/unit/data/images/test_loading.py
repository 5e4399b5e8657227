"""Image files as images of either kind."""

import io

import numpy as np
import pytest
from PIL import Image

from fleet_mpi.data import image_backend
from fleet_mpi.data.images import loading
from fleet_mpi.errors import UsageError

PIXELS = np.random.default_rng(4).integers(0, 256, (5, 6, 3), dtype=np.uint8)


@pytest.fixture
def path(tmp_path):
    """A PNG file."""
    Image.fromarray(PIXELS).save(tmp_path / "some.png")
    return tmp_path / "some.png"


def test_a_file_is_loaded_as_the_backend_says(path, monkeypatch):
    monkeypatch.setattr(image_backend, "_chosen", "pil")
    with loading.image_load(path) as image:
        assert isinstance(image, Image.Image) and (np.asarray(image) == PIXELS).all()
    assert (loading.image_load(path, "cv2") == PIXELS[..., ::-1]).all()  # blue first, as OpenCV's
    image_backend.set_image_backend("tensor")
    assert (loading.image_load(path) == PIXELS).all()
    with pytest.raises(UsageError, match="image_load: expected pil, cv2 or tensor, got 'gif'"):
        loading.image_load(path, "gif")


def test_arrays_of_ppm_files_need_no_pillow(monkeypatch):
    content = b"P6 6 5 255\n" + PIXELS.tobytes()
    assert (np.asarray(loading.decoded(content, "pil")) == PIXELS).all()
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    assert (loading.decoded(content, "cv2") == PIXELS).all()
    with pytest.raises(UsageError, match="expected a PPM image with one byte per colour"):
        loading.decoded(content[:-1], "cv2")


def test_other_formats_are_decoded_by_pillow():
    content = io.BytesIO()
    Image.fromarray(PIXELS).save(content, "PNG")
    assert (loading.decoded(content.getvalue(), "cv2") == PIXELS).all()
