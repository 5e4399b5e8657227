"""``paddle.dataset.imikolov``: sentences as n-grams or sequences."""

from fleet_mpi.data.sets.imikolov import DataType, build_dict, fetch, test, train
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.dataset.imikolov", globals())
