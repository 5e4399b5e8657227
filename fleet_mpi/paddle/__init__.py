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
from fleet_mpi.paddle import (common_ops_import, compat, dataset, distributed, distribution, io, metric, nn, optimizer,
                              reader, regularizer, static, tensor, utils, v2, vision)
from fleet_mpi.paddle.modes import (disable_static, enable_static, get_default_dtype, get_device, in_dynamic_mode, seed,
                                    set_default_dtype, set_device)
from fleet_mpi.paddle.param_attr import ParamAttr
from fleet_mpi.paddle.tensor.attribute import numel, rank, shape
from fleet_mpi.paddle.tensor.creation import (arange, assign, diag, eye, full, full_like, linspace, meshgrid, ones,
                                              ones_like, to_tensor, tril, triu, zeros, zeros_like)
from fleet_mpi.paddle.tensor.linalg import bmm, dot, einsum, matmul, mm, norm, t
from fleet_mpi.paddle.tensor.logic import (all, allclose, any, equal, equal_all, greater_equal, greater_than, is_empty,
                                           less_equal, less_than, logical_and, logical_not, logical_or, logical_xor,
                                           not_equal)
from fleet_mpi.paddle.tensor.manipulation import (broadcast_to, cast, chunk, concat, crop, expand, expand_as, flatten,
                                                  flip, gather, gather_nd, reshape, roll, scatter, scatter_nd,
                                                  scatter_nd_add, shard_index, slice, split, squeeze, stack,
                                                  strided_slice, tile, transpose, unbind, unique, unsqueeze, unstack)
from fleet_mpi.paddle.tensor.math import (abs, acos, add, add_n, addcmul, addmm, asin, atan, ceil, clip, cos, cosh,
                                          cumsum, divide, erf, exp, floor, floor_divide, floor_mod, increment, isfinite,
                                          isinf, isnan, log, log1p, logsumexp, max, maximum, mean, min, minimum, mod,
                                          multiply, pow, prod, reciprocal, remainder, round, rsqrt, scale, sign, sin,
                                          sinh, sqrt, square, stanh, std, subtract, sum, tan, tanh, var)
from fleet_mpi.paddle.tensor.random import multinomial, normal, rand, randint, randn, randperm, uniform
from fleet_mpi.paddle.tensor.search import (argmax, argmin, argsort, index_select, masked_select, nonzero, sort, topk,
                                            where)
from fleet_mpi.program.layers.tensor import create_parameter
from fleet_mpi.program.types import VarType as _VarType
from fleet_mpi.program.version import STANDS_FOR as __version__

bool, uint8, int8, int16, int32, int64 = (_VarType(name) for name in "bool uint8 int8 int16 int32 int64".split())
float16, float32, float64 = (_VarType(name) for name in "float16 float32 float64".split())

base = fluid  # as 2.5 and later call it

# Not imported with the rest: few scripts use them.
__getattr__ = _missing_name("paddle", globals(), {
    "no_grad": "fleet_mpi.fluid.dygraph:no_grad", "XPUPlace": "fleet_mpi.fluid.core:XPUPlace", "paddle": "fleet_mpi.paddle",
    "multiplex": "fleet_mpi.program.layers.positions",
    **{name: f"fleet_mpi.paddle.{name}" for name in ("framework", "incubate", "jit", "sysconfig", "text")}}, dict.fromkeys(
        ("DataParallel", "grad", "Model", "summary", "flops"),
        "there is no eager mode; build a program and run it with an Executor"))
