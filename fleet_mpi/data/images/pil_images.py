"""What is done to a Pillow image, by Pillow; imported only where there is one."""

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from fleet_mpi.data.images import array_images
from fleet_mpi.errors import UsageError, nearest

_INTERPOLATIONS = {name.lower(): Image.Resampling[name] for name in
                   ("NEAREST", "BILINEAR", "BICUBIC", "BOX", "LANCZOS", "HAMMING")}


def to_tensor(pic, data_format):
    """As of the array of this image: 16-bit images as int32, images of two colours as 0 and 1."""
    if pic.mode in ("I", "I;16"):
        pixels = np.array(pic, np.int32)
    elif pic.mode == "1":
        pixels = np.array(pic, np.uint8) * np.uint8(255)
    else:
        pixels = np.array(pic)
    return array_images.to_tensor(pixels, data_format)


def resize(img, height, width, interpolation):
    """The whole image in another size."""
    return img.resize((width, height), _method("resize", interpolation))


def pad(img, borders, fill, padding_mode):
    """The image with a border; ``borders``: left, top, right, bottom."""
    if padding_mode == "constant":
        made = ImageOps.expand(img, borders, _for_all_bands(img, fill))
    else:
        made = Image.fromarray(array_images.pad(np.asarray(img), borders, fill, padding_mode))
    if img.mode == "P":
        made.putpalette(img.getpalette())
    return made


def crop(img, top, left, height, width):
    """A rectangle of the image, black where it lies outside."""
    return img.crop((left, top, left + width, top + height))


def hflip(img):
    """Left and right exchanged."""
    return img.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def vflip(img):
    """Top and bottom exchanged."""
    return img.transpose(Image.Transpose.FLIP_TOP_BOTTOM)


def rotate(img, angle, interpolation, expand, center, fill):
    """The image turned counter-clockwise by degrees."""
    return img.rotate(angle, _method("rotate", interpolation), expand, center, fillcolor=_for_all_bands(img, fill))


def adjust_brightness(img, factor):
    """Every colour times the factor."""
    return ImageEnhance.Brightness(img).enhance(factor)


def adjust_contrast(img, factor):
    """Every colour as much farther from the mean grey."""
    return ImageEnhance.Contrast(img).enhance(factor)


def adjust_saturation(img, factor):
    """Every colour as much farther from its grey."""
    return ImageEnhance.Color(img).enhance(factor)


def adjust_hue(img, factor):
    """Every colour moved round the circle of hues; images without colours stay as they are."""
    if img.mode in ("L", "1", "I", "F"):
        return img
    hue, saturation, value = img.convert("HSV").split()
    moved = (np.asarray(hue, np.int32) + int(factor * 255)) % 256
    return Image.merge("HSV", (Image.fromarray(moved.astype(np.uint8)), saturation, value)).convert(img.mode)


def to_grayscale(img, num_output_channels):
    """The brightness as seen, in one channel or three times."""
    grey = img.convert("L")
    return grey if num_output_channels == 1 else Image.merge("RGB", (grey,) * 3)


def _for_all_bands(img, fill):
    """A number as one for each band: Pillow itself takes it for the bits of all of them."""
    bands = len(img.getbands())
    if isinstance(fill, (int, float)):
        return (int(fill),) * bands if bands > 1 else fill
    return tuple(fill) if isinstance(fill, list) else fill


def _method(who, interpolation):
    if interpolation not in _INTERPOLATIONS:
        raise UsageError(f"{who}: no interpolation {interpolation!r} for Pillow images; "
                         f"{nearest(interpolation, _INTERPOLATIONS)}")
    return _INTERPOLATIONS[interpolation]
