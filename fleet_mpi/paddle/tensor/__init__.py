"""``paddle.tensor``: functions of variables, by the module of the original they come from."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.tensor import attribute, creation, linalg, logic, manipulation, math, random, search
from fleet_mpi.paddle.tensor.attribute import numel, rank, shape
from fleet_mpi.paddle.tensor.creation import (arange, assign, create_tensor, diag, eye, fill_constant, full, full_like,
                                              linspace, meshgrid, ones, ones_like, tril, triu, zeros, zeros_like)
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

__getattr__ = _missing_name("paddle.tensor", globals())
