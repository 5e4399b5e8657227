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
from fleet_mpi.paddle import (common_ops_import, compat, dataset, distributed, io, metric, optimizer, reader,
                              regularizer, static, tensor, utils)
from fleet_mpi.paddle.modes import (Tensor, disable_static, enable_static, get_default_dtype, get_device,
                                    in_dynamic_mode, seed, set_default_dtype, set_device)
from fleet_mpi.paddle import of_1x as _of_1x
from fleet_mpi.paddle.param_attr import ParamAttr
from fleet_mpi.paddle.tensor.attribute import numel, rank, shape
from fleet_mpi.paddle.tensor.creation import (arange, assign, diag, diagflat, empty, empty_like, eye, full, full_like,
                                              linspace, meshgrid, ones, ones_like, to_tensor, tril, triu, zeros,
                                              zeros_like)
from fleet_mpi.paddle.tensor.linalg import (bmm, cholesky, cross, dist, dot, einsum, histogram, matmul, mm, mv, norm,
                                            t)
from fleet_mpi.paddle.tensor.logic import (all, allclose, any, equal, equal_all, greater_equal, greater_than, is_empty,
                                           is_tensor, less_equal, less_than, logical_and, logical_not, logical_or,
                                           logical_xor, not_equal)
from fleet_mpi.paddle.tensor.manipulation import (broadcast_to, cast, chunk, concat, crop, expand, expand_as, flatten,
                                                  flip, gather, gather_nd, reshape, reshape_, reverse, roll, scatter,
                                                  scatter_, scatter_nd, scatter_nd_add, shard_index, slice, split,
                                                  squeeze, squeeze_, stack, strided_slice, tile, transpose, unbind,
                                                  unique, unsqueeze, unsqueeze_, unstack)
from fleet_mpi.paddle.tensor.math import (abs, acos, add, add_n, addcmul, addmm, asin, atan, broadcast_shape, ceil,
                                          clip,
                                          conj, cos, cosh, cumsum, divide, erf, exp, floor, floor_divide, floor_mod,
                                          increment, inverse, isfinite, isinf, isnan, kron, log, log1p, log2, log10,
                                          logsumexp, max, maximum, mean, min, minimum, mod, multiplex, multiply, pow,
                                          prod, reciprocal, remainder, round, rsqrt, scale, sign, sin, sinh, sqrt,
                                          square, stanh, std, subtract, sum, tan, tanh, tanh_, trace, var)
from fleet_mpi.paddle.tensor.random import (bernoulli, multinomial, normal, rand, randint, randn, randperm,
                                            standard_normal, uniform)
from fleet_mpi.paddle.tensor.search import (argmax, argmin, argsort, index_sample, index_select, masked_select, nonzero,
                                            sort, topk, where)
from fleet_mpi.paddle.tensor.stat import median
from fleet_mpi.program.layers.tensor import create_parameter
from fleet_mpi.program.graph.types import VarType as _VarType
from fleet_mpi.program.graph.version import STANDS_FOR as __version__

bool, uint8, int8, int16, int32, int64 = (_VarType(name) for name in "bool uint8 int8 int16 int32 int64".split())
float16, float32, float64 = (_VarType(name) for name in "float16 float32 float64".split())

base = fluid  # as 2.5 and later call it

# Not imported with the rest: many scripts use none of them.
__getattr__ = _missing_name("paddle", globals(), {
    "no_grad": "fleet_mpi.fluid.dygraph:no_grad", "XPUPlace": "fleet_mpi.fluid.core:XPUPlace",
    "paddle": "fleet_mpi.paddle",
    "get_cudnn_version": "fleet_mpi.paddle.modes", "set_printoptions": "fleet_mpi.paddle.modes",
    "is_compiled_with_xpu": "fleet_mpi.fluid.core", **_of_1x.PADDLE, "imperative": "fleet_mpi.fluid.dygraph:",
    **{name: f"fleet_mpi.paddle.{name}" for name in (
        "device", "distribution", "framework", "hapi", "incubate", "jit", "nn", "sysconfig", "text", "v2", "version",
        "vision")},
    "Model": "fleet_mpi.hapi.model", "summary": "fleet_mpi.hapi.model_summary:summary",
    "callbacks": "fleet_mpi.paddle.hapi.callbacks",
    **{name: f"fleet_mpi.fluid.refused_modules:{name}" for name in (
        "amp", "autograd", "complex", "hub", "inference", "onnx")}}, {
    **dict.fromkeys(("DataParallel", "grad", "flops"),
                    "there is no eager mode; build a program and run it with an Executor"),
    **dict.fromkeys(("real", "imag"), "complex numbers are not built; keep the two parts in variables of their own")})
