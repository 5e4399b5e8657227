"""The two kinds of image, and the gate to Pillow."""

import sys

import numpy as np

from fleet_mpi.errors import EnvironmentProblem, UsageError


def pillow(who):
    """Pillow's ``Image`` module, for the caller that names itself ``who``.

    Raises:
        EnvironmentProblem: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError:
        raise EnvironmentProblem(f"{who}: this needs pillow, which is not installed: pip install pillow (the extra "
                                 "images), or use numpy arrays (backend='cv2')") from None
    return Image


def is_pil(img):
    """Whether this is a Pillow image; Pillow is not imported to find out."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(img, module.Image)


def is_array(img):
    """Whether this is a numpy array with the dimensions of an image."""
    return isinstance(img, np.ndarray) and img.ndim in (2, 3)


def size_of(img):
    """(width, height), in Pillow's order."""
    if is_pil(img):
        return img.size
    return require_image(img, "an image").shape[1::-1]


def require_image(img, who):
    """The image; anything else is refused."""
    if not is_pil(img) and not is_array(img):
        what = f"an array of shape {img.shape}" if isinstance(img, np.ndarray) else type(img).__name__
        raise UsageError(f"{who}: expected a numpy array [height, width(, channels)] or a Pillow image, got {what}")
    return img
