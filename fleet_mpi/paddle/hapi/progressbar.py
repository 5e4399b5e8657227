"""``paddle.hapi.progressbar``."""

from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.hapi.progressbar", globals(), {"ProgBarLogger": "fleet_mpi.hapi.progress"})
