"""``paddle.dataset.image``: images on their way into a network."""

from fleet_mpi.data.images.early_functions import (center_crop, left_right_flip, load_and_transform, load_image,
                                                   load_image_bytes, random_crop, resize_short, simple_transform,
                                                   to_chw)
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.dataset.image", globals(), refused={
    "batch_images_from_tar": "it writes pickles of images; read the archive with a reader and paddle.batch"})
