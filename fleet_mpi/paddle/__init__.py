"""``paddle``: the names of the 2.x API, each bound to what does the work in this package.

Imports, aliases and signature adapters only. A name that is not here is refused with the nearest that is.
"""

from fleet_mpi import fluid
from fleet_mpi.checkpoint.objects import load, save
from fleet_mpi.data.readers import batch
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid import core
from fleet_mpi.fluid.core import CPUPlace, CUDAPinnedPlace, CUDAPlace
from fleet_mpi.fluid.framework import Program, get_flags, is_compiled_with_cuda, set_flags
from fleet_mpi.paddle import (common_ops_import, compat, dataset, distributed, io, metric, nn, optimizer, reader,
                              regularizer, static, tensor, utils, v2, vision)
from fleet_mpi.paddle.modes import disable_static, enable_static, get_device, in_dynamic_mode, seed, set_device
from fleet_mpi.paddle.param_attr import ParamAttr
from fleet_mpi.paddle.tensor.attribute import numel, rank, shape
from fleet_mpi.paddle.tensor.creation import (arange, assign, eye, full, full_like, linspace, ones, ones_like,
                                              to_tensor, zeros, zeros_like)
from fleet_mpi.paddle.tensor.linalg import bmm, dot, matmul, mm, norm
from fleet_mpi.paddle.tensor.logic import (all, any, equal, equal_all, greater_equal, greater_than, is_empty,
                                           less_equal, less_than, logical_and, logical_not, logical_or, logical_xor,
                                           not_equal)
from fleet_mpi.paddle.tensor.manipulation import (cast, chunk, concat, expand, expand_as, flatten, flip, gather,
                                                  gather_nd, reshape, scatter, shard_index, slice, split, squeeze,
                                                  stack, strided_slice, tile, transpose, unsqueeze, unstack)
from fleet_mpi.paddle.tensor.math import (abs, acos, add, add_n, asin, atan, ceil, clip, cos, cosh, cumsum, divide,
                                          erf, exp, floor, floor_divide, increment, isfinite, isinf, isnan, log, max,
                                          maximum, mean, min, minimum, mod, multiply, pow, prod, reciprocal,
                                          remainder, round, rsqrt, scale, sign, sin, sinh, sqrt, square, subtract,
                                          sum, tan, tanh)
from fleet_mpi.paddle.tensor.random import normal, rand, randint, randn, randperm, uniform
from fleet_mpi.paddle.tensor.search import argmax, argmin, argsort, sort, topk, where
from fleet_mpi.program.layers.tensor import create_parameter
from fleet_mpi.program.version import STANDS_FOR as __version__

__getattr__ = _missing_name("paddle", globals())
