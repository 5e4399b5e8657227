"""``paddle.utils.plot``: curves of costs while a notebook trains."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.metrics.curves import PlotData, Ploter

__getattr__ = _missing_name("paddle.utils.plot", globals())
