"""``paddle.utils``: unique names and version checks."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid import unique_name
from fleet_mpi.program.version import require_version

__getattr__ = _missing_name("paddle.utils", globals())
