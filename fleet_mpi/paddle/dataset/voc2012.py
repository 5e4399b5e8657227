"""``paddle.dataset.voc2012``: photographs with the class of every pixel."""

from fleet_mpi.data.sets.voc2012 import (CACHE_DIR, DATA_FILE, LABEL_FILE, SET_FILE, VOC_MD5, VOC_URL, fetch,
                                         reader_creator, test, train, val)
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.dataset.voc2012", globals())
