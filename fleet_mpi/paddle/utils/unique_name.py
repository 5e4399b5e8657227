"""``paddle.utils.unique_name``: names that no other variable has."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.graph.unique_name import generate, guard, switch

__getattr__ = _missing_name("paddle.utils.unique_name", globals())
