"""``paddle.dataset.cifar``: small colour images."""

from fleet_mpi.data.sets.cifar import fetch, reader_creator, test10, test100, train10, train100
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.dataset.cifar", globals())
