"""``fluid.contrib.op_frequence``: how often a program has each op."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.graph.op_counts import op_freq_statistic

__getattr__ = _missing_name("paddle.fluid.contrib.op_frequence", globals())
