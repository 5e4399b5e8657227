"""``paddle.io``: loaders."""

from fleet_mpi.data.loader import DataLoader
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.io", globals())
