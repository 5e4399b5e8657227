"""``paddle.vision.transforms``: changes of images, as classes and as functions."""

import sys as _sys

from fleet_mpi.data.images.colour_transforms import (BrightnessTransform, ColorJitter, ContrastTransform, Grayscale,
                                                     HueTransform, SaturationTransform)
from fleet_mpi.data.images.functions import (adjust_brightness, adjust_contrast, adjust_hue, adjust_saturation,
                                             center_crop, crop, hflip, normalize, pad, resize, rotate, to_grayscale,
                                             to_tensor, vflip)
from fleet_mpi.data.images.transforms import (BaseTransform, CenterCrop, Compose, Normalize, Pad, RandomCrop,
                                              RandomHorizontalFlip, RandomResizedCrop, RandomRotation,
                                              RandomVerticalFlip, Resize, ToTensor, Transpose)
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.vision.transforms import functional

transforms = _sys.modules[__name__]  # the original has the classes in a module below, too

__getattr__ = _missing_name("paddle.vision.transforms", globals())
