"""``paddle.hapi.model_summary``."""

from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.hapi.model_summary", globals(), {
    "summary": "fleet_mpi.hapi.model_summary:summary"})
