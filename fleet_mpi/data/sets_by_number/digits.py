"""MNIST and Fashion-MNIST: a sample is (a picture of 28 x 28 greys, its class as int64 [1])."""

import numpy as np

from fleet_mpi.data.sets import fashion_mnist, mnist
from fleet_mpi.data.sets_by_number.pictures import Pictures
from fleet_mpi.data.sets_by_number.samples import paths_of


class MNIST(Pictures):
    """Handwritten digits; without a transform and with the backend cv2, float32 [28, 28] from 0 to 255."""

    NAME = "mnist"
    TEST_IMAGE_URL, TEST_IMAGE_MD5 = mnist.TEST_IMAGE_URL, mnist.TEST_IMAGE_MD5
    TEST_LABEL_URL, TEST_LABEL_MD5 = mnist.TEST_LABEL_URL, mnist.TEST_LABEL_MD5
    TRAIN_IMAGE_URL, TRAIN_IMAGE_MD5 = mnist.TRAIN_IMAGE_URL, mnist.TRAIN_IMAGE_MD5
    TRAIN_LABEL_URL, TRAIN_LABEL_MD5 = mnist.TRAIN_LABEL_URL, mnist.TRAIN_LABEL_MD5
    _set = mnist

    def __init__(self, image_path=None, label_path=None, mode="train", transform=None, download=True, backend=None):
        super().__init__(mode, ("train", "test"), transform, backend)
        paths = paths_of(self, download, self.NAME, {
            self._fact("IMAGE_URL"): (image_path, self._fact("IMAGE_MD5")),
            self._fact("LABEL_URL"): (label_path, self._fact("LABEL_MD5"))})
        self.image_path, self.label_path = paths or (None, None)
        self.images, labels = mnist.read_pair(*paths) if paths else self._set.drawn(self.mode)
        self.labels = labels.astype(np.int64).reshape(-1, 1)

    def _fact(self, name):
        """A constant of the mode: ``TRAIN_IMAGE_URL`` and so on."""
        return getattr(self, f"{self.mode.upper()}_{name}")

    def __getitem__(self, idx):
        pixels = self.images[idx]
        # As in the original, arrays are float before the transform: ToTensor leaves them from 0 to 255.
        image = self._from_array(pixels) if self.backend == "pil" else self._transformed(pixels.astype(self.dtype))
        return image, self.labels[idx]

    def __len__(self):
        return len(self.labels)


class FashionMNIST(MNIST):
    """Pieces of clothing in the format of MNIST."""

    NAME = "fashion-mnist"
    TEST_IMAGE_URL, TEST_IMAGE_MD5 = fashion_mnist.TEST_IMAGE_URL, fashion_mnist.TEST_IMAGE_MD5
    TEST_LABEL_URL, TEST_LABEL_MD5 = fashion_mnist.TEST_LABEL_URL, fashion_mnist.TEST_LABEL_MD5
    TRAIN_IMAGE_URL, TRAIN_IMAGE_MD5 = fashion_mnist.TRAIN_IMAGE_URL, fashion_mnist.TRAIN_IMAGE_MD5
    TRAIN_LABEL_URL, TRAIN_LABEL_MD5 = fashion_mnist.TRAIN_LABEL_URL, fashion_mnist.TRAIN_LABEL_MD5
    _set = fashion_mnist
