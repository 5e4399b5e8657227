"""What 1.x did to images on their way into a network: arrays [height, width(, 3)] in the order blue, green, red, as
OpenCV's.

Random crops and flips draw from numpy's global random state, as the original's do.
"""

import io

import numpy as np

from fleet_mpi.data.images import array_images
from fleet_mpi.data.images.kinds import pillow
from fleet_mpi.errors import UsageError


def load_image_bytes(bytes, is_color=True):
    """The bytes of an image file as an array: coloured, or [height, width] of greys."""
    with pillow("load_image_bytes").open(io.BytesIO(bytes)) as image:
        pixels = np.array(image.convert("RGB" if is_color else "L"))
    return np.ascontiguousarray(pixels[..., ::-1]) if is_color else pixels


def load_image(file, is_color=True):
    """As ``load_image_bytes``, of a path."""
    with open(file, "rb") as stream:
        return load_image_bytes(stream.read(), is_color)


def resize_short(im, size):
    """In another size, its shorter edge ``size`` long and its shape kept."""
    height, width = im.shape[:2]
    new = (size * height // width, size) if height > width else (size, size * width // height)
    return array_images.resize(im, *new, "bicubic")


def to_chw(im, order=(2, 0, 1)):
    """Channels first."""
    if len(im.shape) != len(order):
        raise UsageError(f"to_chw: expected an image of {len(order)} dimensions, got shape {im.shape}")
    return im.transpose(order)


def center_crop(im, size, is_color=True):
    """The square of this size in the middle."""
    spare = _spare(im, size)
    return _square(im, spare[0] // 2, spare[1] // 2, size)


def random_crop(im, size, is_color=True):
    """A square of this size anywhere."""
    down, right = (np.random.randint(0, spare + 1) for spare in _spare(im, size))
    return _square(im, down, right, size)


def left_right_flip(im, is_color=True):
    """Mirrored."""
    return im[:, ::-1]


def simple_transform(im, resize_size, crop_size, is_train, is_color=True, mean=None):
    """Resized, cut (for training anywhere, and mirrored half of the times), channels first, float32, less a mean."""
    im = resize_short(im, resize_size)
    im = random_crop(im, crop_size) if is_train else center_crop(im, crop_size)
    if is_train and np.random.randint(2) == 0:
        im = left_right_flip(im)
    im = (to_chw(im) if im.ndim == 3 else im).astype("float32")
    return im if mean is None else im - _as_mean(mean, is_color)


def load_and_transform(filename, resize_size, crop_size, is_train, is_color=True, mean=None):
    """``simple_transform`` of a file."""
    return simple_transform(load_image(filename, is_color), resize_size, crop_size, is_train, is_color, mean)


def _spare(im, size):
    """How many rows and columns are left beside a square of this size."""
    if min(im.shape[:2]) < size:
        raise UsageError(f"expected an image of at least {size} x {size} pixels, got shape {im.shape}")
    return [edge - size for edge in im.shape[:2]]


def _square(im, down, right, size):
    return im[down:down + size, right:right + size]


def _as_mean(mean, is_color):
    """A mean for every channel, or for every element."""
    mean = np.array(mean, "float32")
    return mean[:, None, None] if mean.ndim == 1 and is_color else mean
