"""``paddle.dataset.conll05``: semantic roles."""

from fleet_mpi.data.sets.conll05 import fetch, get_dict, get_embedding, test
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.dataset.conll05", globals())
