"""``fluid.layers.metric_op``: metrics as ops of a program."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.metric import accuracy, auc

__getattr__ = _missing_name("paddle.fluid.layers.metric_op", globals())
