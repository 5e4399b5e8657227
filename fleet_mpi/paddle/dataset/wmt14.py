"""``paddle.dataset.wmt14``: sentence pairs, English to French."""

from fleet_mpi.data.sets.wmt14 import END, START, UNK, UNK_IDX, fetch, gen, get_dict, test, train
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.dataset.wmt14", globals())
