"""What is done to an image that is a numpy array [height, width(, channels)], colours in the order red, green, blue.

Results have the dtype of the image. Colours are numbers from 0 to 255, whatever the dtype.
"""

import math

import numpy as np

from fleet_mpi.data.images import resampling
from fleet_mpi.errors import UsageError

# What OpenCV's users take for the middle of a picture's brightness, as the original does.
_MIDDLE = 74


def to_tensor(pic, data_format):
    """[channels, height, width] (CHW) or [height, width, channels]; bytes become float32 in [0, 1]."""
    pic = pic[:, :, None] if pic.ndim == 2 else pic
    pic = pic.astype(np.float32) / np.float32(255) if pic.dtype == np.uint8 else pic
    return np.ascontiguousarray(pic.transpose(2, 0, 1)) if data_format == "CHW" else pic


def resize(img, height, width, interpolation):
    """The whole image in another size."""
    return resampling.resize(img, height, width, interpolation)


def pad(img, borders, fill, padding_mode):
    """The image with a border; ``borders``: left, top, right, bottom."""
    left, top, right, bottom = borders
    around = [(top, bottom), (left, right)] + [(0, 0)] * (img.ndim - 2)
    if padding_mode != "constant":
        return np.pad(img, around, mode=padding_mode)
    made = np.empty([size + sum(more) for size, more in zip(img.shape, around)], img.dtype)
    made[...] = fill
    made[top:top + img.shape[0], left:left + img.shape[1]] = img
    return made


def crop(img, top, left, height, width):
    """A rectangle of the image; what lies beyond its lower right is left out."""
    if top < 0 or left < 0:
        raise UsageError(f"crop: expected a rectangle within the image of {img.shape[:2]} pixels, got its corner at "
                         f"{(top, left)} and {(height, width)} pixels: pad the image first, or make it larger")
    return img[top:top + height, left:left + width]


def hflip(img):
    """Left and right exchanged."""
    return np.ascontiguousarray(img[:, ::-1])


def vflip(img):
    """Top and bottom exchanged."""
    return np.ascontiguousarray(img[::-1])


def rotate(img, angle, interpolation, expand, center, fill):
    """The image turned counter-clockwise by degrees; with ``expand`` as large as it needs to be."""
    height, width = img.shape[:2]
    if center is None and angle % 90 == 0 and (expand or angle % 180 == 0 or height == width):
        return np.rot90(img, int(angle // 90)).copy()
    # Rounded as Pillow does, so that right angles are exact.
    cos, sin = (round(turn(math.radians(angle)), 15) for turn in (math.cos, math.sin))
    middle_x, middle_y = center or (width / 2, height / 2)
    new_height, new_width = _extent(height, width, cos, sin, middle_x, middle_y) if expand else (height, width)
    y, x = np.mgrid[0:new_height, 0:new_width] + 0.5
    right, down = x - middle_x - (new_width - width) / 2, y - middle_y - (new_height - height) / 2
    # From where each output pixel comes: turned back.
    x, y = cos * right - sin * down + middle_x, sin * right + cos * down + middle_y
    made = resampling.as_dtype(resampling.sample(img, y, x, interpolation), img.dtype)
    made[(x < 0) | (x >= width) | (y < 0) | (y >= height)] = fill
    return made


def _extent(height, width, cos, sin, middle_x, middle_y):
    """(height, width) of what a turned rectangle covers."""
    corners = [(x - middle_x, y - middle_y) for x in (0, width) for y in (0, height)]
    across = [cos * x + sin * y + middle_x for x, y in corners]
    down = [cos * y - sin * x + middle_y for x, y in corners]
    return tuple(math.ceil(max(places)) - math.floor(min(places)) for places in (down, across))


def adjust_brightness(img, factor):
    """Every colour times the factor."""
    return _by_value(img, lambda colours: colours * float(factor))


def adjust_contrast(img, factor):
    """Every colour as much farther from the middle."""
    return _by_value(img, lambda colours: (colours - float(_MIDDLE)) * factor + _MIDDLE)


def adjust_saturation(img, factor):
    """Every colour as much farther from its grey."""
    if not _is_coloured(img):
        return img
    return _held(img * np.float32(factor) + _grey(img)[..., None] * np.float32(1.0 - factor), img.dtype)


def adjust_hue(img, factor):
    """Every colour moved round the circle of hues; 0.5 is the opposite."""
    if not _is_coloured(img):
        return img
    planes = np.ascontiguousarray(np.moveaxis(img, 2, 0)).astype(np.float32)
    value = planes.max(axis=0)
    chroma = value - planes.min(axis=0)
    hue = _hue(planes, value, chroma) + np.float32(6 * factor)
    # Each of red, green and blue is full over two sixths of the circle, none over two, and between over the rest.
    places = [offset + hue - 6 * np.floor((offset + hue) / 6) for offset in (5, 3, 1)]
    made = [value - chroma * np.clip(np.minimum(place, 4 - place), 0, 1) for place in places]
    return np.stack([resampling.as_dtype(plane, img.dtype) for plane in made], axis=2)


def to_grayscale(img, num_output_channels):
    """The brightness as seen, in one channel or three times."""
    grey = resampling.as_dtype(_grey(img), img.dtype) if _is_coloured(img) else img.reshape(img.shape[:2])
    return np.repeat(grey[:, :, None], num_output_channels, axis=2)


def _hue(planes, value, chroma):
    """The place on the circle of hues, 0 to 6: red at 0, green at 2, blue at 4."""
    red, green, blue = planes
    span = np.where(chroma == 0, np.float32(1), chroma)
    of_others = np.where(value == green, 2 + (blue - red) / span, 4 + (red - green) / span)
    return np.where(value == red, (green - blue) / span, of_others)


def _is_coloured(img):
    if img.ndim == 3 and img.shape[2] not in (1, 3):
        raise UsageError(f"expected an image of 1 or 3 channels for a change of colours, got the shape {img.shape}")
    return img.ndim == 3 and img.shape[2] == 3


def _grey(img):
    return img @ np.array([0.299, 0.587, 0.114], np.float32)


def _by_value(img, change):
    """A change of each colour by itself; of bytes there are only 256."""
    if img.dtype == np.uint8:
        return _held(change(np.arange(256.0)), img.dtype)[img]
    return _held(change(img), img.dtype)


def _held(colours, dtype):
    """Within 0 to 255, in the dtype; the rest is cut off, as the original's tables do."""
    return np.clip(colours, 0, 255).astype(dtype)
