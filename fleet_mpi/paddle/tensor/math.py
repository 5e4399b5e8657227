"""``paddle.tensor.math``: arithmetic, with the argument lists of 2.x."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.activation import (abs, acos, asin, atan, ceil, cos, cosh, erf, exp, floor, log,
                                                 log1p, log2, log10, reciprocal, round, rsqrt, sign, sin, sinh, sqrt,
                                                 square, stanh, tan, tanh)
from fleet_mpi.program.layers.comparison import each_isfinite as isfinite
from fleet_mpi.program.layers.comparison import each_isinf as isinf
from fleet_mpi.program.layers.comparison import each_isnan as isnan
from fleet_mpi.program.layers.functional_math import (_multiply_with_axis, add, add_n, addmm, clip, cumsum, divide,
                                                      floor_divide, floor_mod, increment, logsumexp, max, maximum, mean,
                                                      min, minimum, mod, multiply, pow, prod, remainder, std, subtract,
                                                      sum, var)
from fleet_mpi.program.layers.functional_tensor import broadcast_shape, conj
from fleet_mpi.program.layers.linear_algebra import inverse, kron, trace
from fleet_mpi.program.layers.math import scale
from fleet_mpi.program.layers.positions import multiplex
from fleet_mpi.program.layers.tensor_products import addcmul

tanh_ = tanh  # static programs have no writing in place

__getattr__ = _missing_name("paddle.tensor.math", globals())
