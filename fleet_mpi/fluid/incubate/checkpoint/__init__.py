"""``fluid.incubate.checkpoint``: numbered checkpoints of the collective fleet."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.incubate.checkpoint import auto_checkpoint, checkpoint_saver

__getattr__ = _missing_name("paddle.fluid.incubate.checkpoint", globals())
