"""The library that scripts ask to read images with."""

import pytest

from fleet_mpi.data import image_backend
from fleet_mpi.errors import UsageError


def test_the_choice_is_kept(monkeypatch):
    monkeypatch.setattr(image_backend, "_chosen", "pil")
    image_backend.set_image_backend("cv2")
    assert image_backend.get_image_backend() == "cv2"
    with pytest.raises(UsageError, match="expected pil, cv2 or tensor, got 'gimp'"):
        image_backend.set_image_backend("gimp")
