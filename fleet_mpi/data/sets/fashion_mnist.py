"""Pieces of clothing in the format of MNIST: its files, and a stand-in of greyed patterns by class.

Files: the four idx archives under ``DATA_HOME/fashion-mnist``, read as those of ``mnist``.
"""

import numpy as np

from fleet_mpi import notices
from fleet_mpi.data import home
from fleet_mpi.data.sets import coloured_patterns

URL_PREFIX = "https://dataset.bj.bcebos.com/fashion_mnist/"
TEST_IMAGE_URL = URL_PREFIX + "t10k-images-idx3-ubyte.gz"
TEST_IMAGE_MD5 = "bef4ecab320f06d8554ea6380940ec79"
TEST_LABEL_URL = URL_PREFIX + "t10k-labels-idx1-ubyte.gz"
TEST_LABEL_MD5 = "bb300cfdad3c16e7a12a480ee83cd310"
TRAIN_IMAGE_URL = URL_PREFIX + "train-images-idx3-ubyte.gz"
TRAIN_IMAGE_MD5 = "8d4fb7e6c68d591d4c3dfef9ec88bf0d"
TRAIN_LABEL_URL = URL_PREFIX + "train-labels-idx1-ubyte.gz"
TRAIN_LABEL_MD5 = "25c81989df183df01b3e8a0aad5dffbe"

_COUNT = {"train": 5000, "test": 1000}


def drawn(split):
    """The stand-in's arrays: bytes [count, 28, 28], and as many labels."""
    notices.stand_in("fashion-mnist", "28 x 28 pictures with stripes by class", home.folder("fashion-mnist"))
    pictures = coloured_patterns.Drawn(_COUNT[split], 10, 28, split == "test", len(_COUNT))
    pixels, labels = zip(*pictures)
    # One colour of three: their mean would wash out classes whose colours swing against each other.
    return np.stack([one[..., 1] for one in pixels]), np.array(labels)
