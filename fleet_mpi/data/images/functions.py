"""The functions of ``paddle.vision.transforms.functional``: arguments are checked here, the image's own kind does the
work."""

import numbers

import numpy as np

from fleet_mpi.data.images import array_images
from fleet_mpi.data.images.kinds import is_pil, require_image, size_of
from fleet_mpi.errors import UsageError

_PADDING_MODES = ("constant", "edge", "reflect", "symmetric")


def to_tensor(pic, data_format="CHW"):
    """The image as a **numpy array**: programs are static, so there is no eager tensor to make.

    float32 in [0, 1] where it had bytes, else with its own numbers; channels first unless ``data_format`` is HWC.
    """
    _require_format("to_tensor", data_format)
    return _of_its_kind(pic, "to_tensor").to_tensor(pic, data_format)


def resize(img, size, interpolation="bilinear"):
    """The image in a size (height, width); a single number is that of the shorter edge."""
    kind = _of_its_kind(img, "resize")
    width, height = size_of(img)
    if isinstance(size, numbers.Integral):
        if min(width, height) == size:
            return img
        target = (int(size * height / width), int(size)) if width < height else (int(size), int(size * width / height))
    else:
        target = pair(size, "resize: size")
    return kind.resize(img, *target, interpolation)


def pad(img, padding, fill=0, padding_mode="constant"):
    """The image with a border: one number, (left and right, top and bottom), or (left, top, right, bottom)."""
    if padding_mode not in _PADDING_MODES:
        raise UsageError(f"pad: expected a padding_mode of {', '.join(_PADDING_MODES)}, got {padding_mode!r}")
    return _of_its_kind(img, "pad").pad(img, borders_of(padding), fill, padding_mode)


def crop(img, top, left, height, width):
    """A rectangle of the image."""
    return _of_its_kind(img, "crop").crop(img, top, left, height, width)


def center_crop(img, output_size):
    """The middle of the image: (height, width), or one number for both."""
    height, width = pair(output_size, "center_crop: output_size")
    across, down = size_of(require_image(img, "center_crop"))
    return crop(img, int(round((down - height) / 2.0)), int(round((across - width) / 2.0)), height, width)


def hflip(img):
    """Left and right exchanged."""
    return _of_its_kind(img, "hflip").hflip(img)


def vflip(img):
    """Top and bottom exchanged."""
    return _of_its_kind(img, "vflip").vflip(img)


def rotate(img, angle, interpolation="nearest", expand=False, center=None, fill=0):
    """The image turned counter-clockwise by degrees round ``center`` (x, y), ``fill`` where it shows nothing."""
    return _of_its_kind(img, "rotate").rotate(img, angle, interpolation, expand, center, fill)


def adjust_brightness(img, brightness_factor):
    """0 is black, 1 the image as it is, 2 twice as bright."""
    return _of_its_kind(img, "adjust_brightness").adjust_brightness(img, brightness_factor)


def adjust_contrast(img, contrast_factor):
    """0 is grey, 1 the image as it is, 2 twice the contrast."""
    return _of_its_kind(img, "adjust_contrast").adjust_contrast(img, contrast_factor)


def adjust_saturation(img, saturation_factor):
    """0 is black and white, 1 the image as it is, 2 twice as colourful.

    As the original documents it; its own function for arrays draws a factor at random.
    """
    return _of_its_kind(img, "adjust_saturation").adjust_saturation(img, saturation_factor)


def adjust_hue(img, hue_factor):
    """Colours moved round the circle of hues; from -0.5 to 0.5, both of which are the opposite colours."""
    if not -0.5 <= hue_factor <= 0.5:
        raise UsageError(f"adjust_hue: expected a hue_factor from -0.5 to 0.5, got {hue_factor!r}")
    return _of_its_kind(img, "adjust_hue").adjust_hue(img, hue_factor)


def to_grayscale(img, num_output_channels=1):
    """The image without colours, in 1 or 3 channels."""
    if num_output_channels not in (1, 3):
        raise UsageError(f"to_grayscale: expected 1 or 3 output channels, got {num_output_channels!r}")
    return _of_its_kind(img, "to_grayscale").to_grayscale(img, num_output_channels)


def normalize(img, mean, std, data_format="CHW", to_rgb=False):
    """(img - mean) / std by channel, as a float array; ``to_rgb`` turns the channels' order round first."""
    _require_format("normalize", data_format)
    img = np.array(img, np.float32) if is_pil(img) else np.asarray(img)
    shape = (-1, 1, 1) if data_format == "CHW" else (1, 1, -1)
    img = np.flip(img, 0 if data_format == "CHW" else -1) if to_rgb else img
    mean, std = (np.asarray(given, np.float32).reshape(shape) for given in (mean, std))
    try:
        return (img - mean) / std
    except ValueError:
        raise UsageError(f"normalize: expected an image in the order {data_format} with as many channels as means and "
                         f"standard deviations, got the shape {img.shape}, {mean.size} and {std.size}") from None


def pair(size, what):
    """(height, width) from two numbers, or from one for both."""
    given = [size, size] if isinstance(size, numbers.Number) else list(size)
    if len(given) != 2:
        raise UsageError(f"{what}: expected (height, width) or one number, got {size!r}")
    return int(given[0]), int(given[1])


def borders_of(padding):
    """(left, top, right, bottom) from one, two or four numbers."""
    given = [padding] if isinstance(padding, numbers.Number) else list(padding)
    if len(given) not in (1, 2, 4):
        raise UsageError(f"pad: expected padding of 1, 2 or 4 numbers, got {padding!r}")
    return tuple(int(border) for border in given * (4 // len(given)))


def _require_format(who, data_format):
    if data_format not in ("CHW", "HWC"):
        raise UsageError(f"{who}: expected the data_format CHW or HWC, got {data_format!r}")


def _of_its_kind(img, who):
    """The module that does the work for this image."""
    if not is_pil(require_image(img, who)):
        return array_images
    from fleet_mpi.data.images import pil_images  # only where there is a Pillow image, there is Pillow
    return pil_images
