"""``paddle.v2``: the oldest names; below it (``paddle.v2.dataset``, ``paddle.v2.fluid``) are the later modules."""

from fleet_mpi import fluid
from fleet_mpi.data.readers import batch
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle import dataset, reader


def init(**kwargs):
    """Nothing: devices and threads are chosen by places and settings."""


__getattr__ = _missing_name("paddle.v2", globals(), {"plot": "fleet_mpi.paddle.utils.plot"})
