"""``paddle.dataset.mnist``: handwritten digits."""

from fleet_mpi.data.sets.mnist import (TEST_IMAGE_MD5, TEST_IMAGE_URL, TEST_LABEL_MD5, TEST_LABEL_URL,
                                       TRAIN_IMAGE_MD5, TRAIN_IMAGE_URL, TRAIN_LABEL_MD5, TRAIN_LABEL_URL, fetch,
                                       reader_creator, test, train)
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.dataset.mnist", globals())
