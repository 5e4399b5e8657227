"""``fluid.contrib.model_stat``: parameters and operations of a program, printed."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.graph.model_stat import summary

__getattr__ = _missing_name("paddle.fluid.contrib.model_stat", globals())
