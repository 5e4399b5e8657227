"""``fluid.layers.ops``: functions of one variable, element by element."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.activation import (abs, acos, asin, atan, ceil, cos, cosh, erf, exp, floor, gelu,
                                                 hard_shrink, log, log1p, logsigmoid, reciprocal, round, rsqrt,
                                                 sigmoid, sign, sin, sinh, softplus, softshrink, softsign, sqrt,
                                                 square, tan, tanh, tanh_shrink, thresholded_relu)
from fleet_mpi.program.layers.math import cumsum
from fleet_mpi.program.layers.math import scale_into as _scale
from fleet_mpi.program.layers.tensor import uniform_random

__getattr__ = _missing_name("paddle.fluid.layers.ops", globals())
