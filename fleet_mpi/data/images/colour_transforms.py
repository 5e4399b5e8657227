"""The transforms of ``paddle.vision.transforms`` that change colours; random ones draw from Python's ``random``."""

import random

from fleet_mpi.data.images import functions
from fleet_mpi.data.images.transforms import BaseTransform, Compose
from fleet_mpi.errors import UsageError


class _RandomFactor(BaseTransform):
    """A change of colours by a random factor: up to ``value`` from the one that changes nothing, or within (least,
    most)."""

    _adjust, _name, _unchanged, _bounds = None, None, 1, (0, float("inf"))

    def __init__(self, value, keys=None):
        super().__init__(keys)
        self.value = self._range(value)

    def _range(self, value):
        """(least, most) factor, or None where nothing is to change."""
        least, most = self._bounds
        if isinstance(value, (int, float)) and value >= 0:
            given = [max(least, self._unchanged - value), min(most, self._unchanged + value)]
        elif isinstance(value, (tuple, list)) and len(value) == 2 and least <= value[0] <= value[1] <= most:
            given = list(value)
        else:
            raise UsageError(f"{self._name}: expected a number from 0 up or (least, most) within {self._bounds}, got "
                             f"{value!r}")
        return None if given == [self._unchanged] * 2 else given

    def _apply_image(self, img):
        return img if self.value is None else self._adjust(img, random.uniform(*self.value))


class BrightnessTransform(_RandomFactor):
    """Randomly brighter or darker."""

    _adjust, _name = staticmethod(functions.adjust_brightness), "brightness"


class ContrastTransform(_RandomFactor):
    """Randomly more or less contrast."""

    _adjust, _name = staticmethod(functions.adjust_contrast), "contrast"


class SaturationTransform(_RandomFactor):
    """Randomly more or less colourful."""

    _adjust, _name = staticmethod(functions.adjust_saturation), "saturation"


class HueTransform(_RandomFactor):
    """Randomly other hues; ``value`` is at most 0.5."""

    _adjust, _name, _unchanged, _bounds = staticmethod(functions.adjust_hue), "hue", 0, (-0.5, 0.5)


class ColorJitter(BaseTransform):
    """Brightness, contrast, saturation and hue changed at random, in a random order."""

    def __init__(self, brightness=0, contrast=0, saturation=0, hue=0, keys=None):
        super().__init__(keys)
        self.brightness, self.contrast, self.saturation, self.hue = brightness, contrast, saturation, hue

    def _get_param(self, brightness, contrast, saturation, hue):
        """The four changes in a random order."""
        changes = [kind(value) for kind, value in (
            (BrightnessTransform, brightness), (ContrastTransform, contrast), (SaturationTransform, saturation),
            (HueTransform, hue)) if value is not None]
        random.shuffle(changes)
        return Compose(changes)

    def _apply_image(self, img):
        return self._get_param(self.brightness, self.contrast, self.saturation, self.hue)(img)


class Grayscale(BaseTransform):
    """The image without colours, in 1 or 3 channels."""

    def __init__(self, num_output_channels=1, keys=None):
        super().__init__(keys)
        self.num_output_channels = num_output_channels

    def _apply_image(self, img):
        return functions.to_grayscale(img, self.num_output_channels)
