"""``fluid.data_feeder``: from lists of samples to feeds."""

from fleet_mpi.data.feeder import DataFeeder
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.types import as_dtype as convert_dtype

__getattr__ = _missing_name("paddle.fluid.data_feeder", globals())
