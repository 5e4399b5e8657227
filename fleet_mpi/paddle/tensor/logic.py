"""``paddle.tensor.logic``: questions, answered with bools."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.comparison import equal_all, logical_and, logical_not, logical_or, logical_xor
from fleet_mpi.program.layers.functional_math import (all, any, equal, greater_equal, greater_than, is_empty,
                                                      less_equal,
                                                      less_than, not_equal)
from fleet_mpi.program.layers.functional_tensor import is_tensor
from fleet_mpi.program.layers.positions import allclose

__getattr__ = _missing_name("paddle.tensor.logic", globals())
