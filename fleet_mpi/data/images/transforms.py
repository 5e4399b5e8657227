"""The transforms of ``paddle.vision.transforms`` that move pixels or change what an image is.

Random ones draw from the module generators of Python (``random``) and numpy (``np.random``), as the original's do: a
script that seeds those repeats its images.
"""

import math
import random
from collections.abc import Sequence

import numpy as np

from fleet_mpi.data.images import functions
from fleet_mpi.data.images.functions import pair
from fleet_mpi.data.images.kinds import is_pil, size_of
from fleet_mpi.errors import NotBuilt, UsageError


class Compose:
    """Transforms one after the other."""

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, data):
        for transform in self.transforms:
            data = transform(data)
        return data

    def __repr__(self):
        return "\n    ".join([f"{type(self).__name__}(", *map(str, self.transforms)]) + "\n)"


class BaseTransform:
    """Base of all: ``_apply_image`` of a subclass gets the image.

    With ``keys`` a sample is a tuple, and each of its first fields goes to the ``_apply_<key>`` of its key: image,
    coords, boxes, mask, or any that the subclass defines. ``_get_params(inputs)`` is asked before, and its answer is
    ``self.params``.
    """

    def __init__(self, keys=None):
        keys = ("image",) if keys is None else keys
        if not isinstance(keys, Sequence) or isinstance(keys, str):
            raise UsageError(f"{type(self).__name__}: expected keys such as ('image', 'mask'), got {keys!r}")
        for key in keys:
            if self._get_apply(key) is None:
                raise NotBuilt(f"{type(self).__name__}: no method _apply_{key} for the key {key!r}: define it in a "
                               f"subclass")
        self.keys = keys
        self.params = None

    def __call__(self, inputs):
        fields = inputs if isinstance(inputs, tuple) else (inputs,)
        self.params = self._get_params(fields)
        made = [self._get_apply(key)(field) for key, field in zip(self.keys, fields)]
        made += fields[len(self.keys):]
        return made[0] if len(made) == 1 else tuple(made)

    def _get_params(self, inputs):
        """What all fields of a sample share; for subclasses."""

    def _get_apply(self, key):
        return getattr(self, f"_apply_{key}", None)

    def _apply_image(self, image):
        raise NotImplementedError(f"{type(self).__name__} defines no _apply_image(self, image)")

    def _apply_boxes(self, boxes):
        raise NotImplementedError(f"{type(self).__name__} defines no _apply_boxes(self, boxes)")

    def _apply_mask(self, mask):
        raise NotImplementedError(f"{type(self).__name__} defines no _apply_mask(self, mask)")


class ToTensor(BaseTransform):
    """The image as a **numpy array** [channels, height, width]: programs are static, so there is no eager tensor to
    make.

    Bytes become float32 in [0, 1]; other numbers stay. With ``data_format="HWC"`` channels come last.
    """

    def __init__(self, data_format="CHW", keys=None):
        super().__init__(keys)
        self.data_format = data_format

    def _apply_image(self, img):
        return functions.to_tensor(img, self.data_format)


class Resize(BaseTransform):
    """The image in a size (height, width); a single number is that of the shorter edge."""

    def __init__(self, size, interpolation="bilinear", keys=None):
        super().__init__(keys)
        self.size = size if isinstance(size, int) else pair(size, "Resize: size")
        self.interpolation = interpolation

    def _apply_image(self, img):
        return functions.resize(img, self.size, self.interpolation)


class RandomResizedCrop(BaseTransform):
    """A rectangle of random area (``scale``, a share) and shape (``ratio``, width to height), resized to ``size``."""

    def __init__(self, size, scale=(0.08, 1.0), ratio=(3.0 / 4, 4.0 / 3), interpolation="bilinear", keys=None):
        super().__init__(keys)
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            raise UsageError(f"RandomResizedCrop: expected (least, most) for scale and ratio, got {scale} and {ratio}")
        self.size = pair(size, "RandomResizedCrop: size")
        self.scale, self.ratio, self.interpolation = scale, ratio, interpolation

    def _get_param(self, image, attempts=10):
        """(top, left, height, width) of the rectangle; after as many attempts the middle of the image."""
        width, height = size_of(image)
        for _ in range(attempts):
            area = np.random.uniform(*self.scale) * height * width
            shape = math.exp(np.random.uniform(*map(math.log, self.ratio)))
            w, h = (int(round(math.sqrt(edge))) for edge in (area * shape, area / shape))
            if 0 < w <= width and 0 < h <= height:
                return random.randint(0, height - h), random.randint(0, width - w), h, w
        w = min(width, int(round(height * max(self.ratio))))
        h = min(height, int(round(width / min(self.ratio))))
        return (height - h) // 2, (width - w) // 2, h, w

    def _apply_image(self, img):
        return functions.resize(functions.crop(img, *self._get_param(img)), self.size, self.interpolation)


class CenterCrop(BaseTransform):
    """The middle of the image."""

    def __init__(self, size, keys=None):
        super().__init__(keys)
        self.size = pair(size, "CenterCrop: size")

    def _apply_image(self, img):
        return functions.center_crop(img, self.size)


class RandomHorizontalFlip(BaseTransform):
    """Left and right exchanged, with a probability."""

    _flip = staticmethod(functions.hflip)

    def __init__(self, prob=0.5, keys=None):
        super().__init__(keys)
        if not 0 <= prob <= 1:
            raise UsageError(f"{type(self).__name__}: expected a probability from 0 to 1, got {prob!r}")
        self.prob = prob

    def _apply_image(self, img):
        return self._flip(img) if random.random() < self.prob else img


class RandomVerticalFlip(RandomHorizontalFlip):
    """Top and bottom exchanged, with a probability."""

    _flip = staticmethod(functions.vflip)


class Normalize(BaseTransform):
    """(image - mean) / std by channel, as a float array; one number is for all channels."""

    def __init__(self, mean=0.0, std=1.0, data_format="CHW", to_rgb=False, keys=None):
        super().__init__(keys)
        # A list of one, not of three: an image of one channel keeps it.
        self.mean, self.std = ([given] if isinstance(given, (int, float)) else given for given in (mean, std))
        self.data_format, self.to_rgb = data_format, to_rgb

    def _apply_image(self, img):
        return functions.normalize(img, self.mean, self.std, self.data_format, self.to_rgb)


class Transpose(BaseTransform):
    """The image as an array with its dimensions in another order; channels first by default."""

    def __init__(self, order=(2, 0, 1), keys=None):
        super().__init__(keys)
        self.order = order

    def _apply_image(self, img):
        img = np.asarray(img) if is_pil(img) else img
        return (img[..., None] if img.ndim == 2 else img).transpose(self.order)


class RandomCrop(BaseTransform):
    """A rectangle of ``size`` at a random place, of the image with a border where ``padding`` says so."""

    def __init__(self, size, padding=None, pad_if_needed=False, fill=0, padding_mode="constant", keys=None):
        super().__init__(keys)
        self.size = pair(size, "RandomCrop: size")
        self.padding, self.pad_if_needed, self.fill, self.padding_mode = padding, pad_if_needed, fill, padding_mode

    def _get_param(self, img, output_size):
        """(top, left, height, width) of the rectangle."""
        width, height = size_of(img)
        h, w = output_size
        if h > height or w > width:
            raise UsageError(f"RandomCrop: expected an image of at least {(h, w)} pixels, got {(height, width)}: "
                             "make it larger, or say pad_if_needed=True")
        if (h, w) == (height, width):
            return 0, 0, h, w
        return random.randint(0, height - h), random.randint(0, width - w), h, w

    def _apply_image(self, img):
        if self.padding is not None:
            img = self._padded(img, self.padding)
        width, height = size_of(img)
        if self.pad_if_needed and width < self.size[1]:
            img = self._padded(img, (self.size[1] - width, 0))
        if self.pad_if_needed and height < self.size[0]:
            img = self._padded(img, (0, self.size[0] - height))
        return functions.crop(img, *self._get_param(img, self.size))

    def _padded(self, img, padding):
        return functions.pad(img, padding, self.fill, self.padding_mode)


class Pad(BaseTransform):
    """The image with a border."""

    def __init__(self, padding, fill=0, padding_mode="constant", keys=None):
        functions.borders_of(padding)
        super().__init__(keys)
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def _apply_image(self, img):
        return functions.pad(img, self.padding, self.fill, self.padding_mode)


class RandomRotation(BaseTransform):
    """The image turned by random degrees: within (least, most), or up to one number to either side."""

    def __init__(self, degrees, interpolation="nearest", expand=False, center=None, fill=0, keys=None):
        super().__init__(keys)
        self.degrees = (-degrees, degrees) if isinstance(degrees, (int, float)) else tuple(degrees)
        if len(self.degrees) != 2 or self.degrees[0] > self.degrees[1]:
            raise UsageError(f"RandomRotation: expected degrees from 0 up, or (least, most), got {degrees!r}")
        self.interpolation, self.expand, self.center, self.fill = interpolation, expand, center, fill

    def _get_param(self, degrees):
        """The degrees to turn by."""
        return random.uniform(degrees[0], degrees[1])

    def _apply_image(self, img):
        return functions.rotate(img, self._get_param(self.degrees), self.interpolation, self.expand, self.center,
                                self.fill)
