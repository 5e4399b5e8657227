"""``paddle.tensor.stat``: what describes a variable's values."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.tensor.attribute import numel
from fleet_mpi.program.layers.functional_math import mean, std, var
from fleet_mpi.program.layers.statistics import median

__getattr__ = _missing_name("paddle.tensor.stat", globals())
