"""What the sets of pictures share: the kind of image, and the script's transform."""

import numpy as np

from fleet_mpi.data import image_backend
from fleet_mpi.data.images.kinds import pillow
from fleet_mpi.data.io_datasets import Dataset
from fleet_mpi.data.sets_by_number.samples import mode_of


class Pictures(Dataset):
    """Pictures by number: Pillow images (backend pil) or arrays (cv2), as the transform leaves them.

    With cv2 the result is float32, whatever the transform gave; with pil it is what the transform gave.
    """

    def __init__(self, mode, modes, transform, backend):
        self.mode = mode_of(self, mode, modes)
        self.transform = transform
        self.backend = image_backend.one_of(f"{type(self).__name__}: backend", backend, image_backend.OF_DATA_SETS)
        self.dtype = "float32"

    def _from_array(self, pixels):
        """The picture of bytes [height, width(, 3)], transformed."""
        if self.backend == "pil":
            pixels = pillow(type(self).__name__).fromarray(pixels)
        return self._transformed(pixels)

    def _transformed(self, image):
        if self.transform is not None:
            image = self.transform(image)
        return image if self.backend == "pil" else np.asarray(image).astype(self.dtype)
