"""``fluid.communicator``: what sends gradients while a worker computes, for scripts that start and stop it
themselves."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.communicator import Communicator

__getattr__ = _missing_name("paddle.fluid.communicator", globals(), refused={
    "LargeScaleKV": "tables are not read by hand; save_persistables writes them"})
