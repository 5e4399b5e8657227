"""``paddle.vision.transforms.functional``: changes of images as functions."""

from fleet_mpi.data.images.functions import (adjust_brightness, adjust_contrast, adjust_hue, adjust_saturation,
                                             center_crop, crop, hflip, normalize, pad, resize, rotate, to_grayscale,
                                             to_tensor, vflip)
from fleet_mpi.data.images.kinds import is_array as _is_numpy_image
from fleet_mpi.data.images.kinds import is_pil as _is_pil_image
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.vision.transforms.functional", globals())
