"""``paddle.dataset.wmt16``: sentence pairs, English and German."""

from fleet_mpi.data.sets.wmt16 import fetch, get_dict, test, train, validation
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.dataset.wmt16", globals())
