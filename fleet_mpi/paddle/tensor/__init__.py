"""``paddle.tensor``: functions of variables, by the module of the original they come from."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.tensor import attribute, creation, linalg, logic, manipulation, math, random, search

__getattr__ = _missing_name("paddle.tensor", globals())
