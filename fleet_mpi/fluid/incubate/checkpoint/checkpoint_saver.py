"""``fluid.incubate.checkpoint.checkpoint_saver``: the numbered checkpoints in a folder."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.collective_checkpoints import CheckpointSaver

__getattr__ = _missing_name("paddle.fluid.incubate.checkpoint.checkpoint_saver", globals())
