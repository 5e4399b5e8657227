"""``paddle.dataset.flowers``: photographs of 102 kinds of flower."""

from fleet_mpi.data.sets.flowers import fetch, test, test_mapper, train, train_mapper, valid
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.dataset.flowers", globals())
