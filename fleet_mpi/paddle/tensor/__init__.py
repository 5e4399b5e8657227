"""``paddle.tensor``: functions of variables, by the module of the original they come from."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.paddle.of_1x import TENSOR as _OF_1X
from fleet_mpi.paddle.tensor import attribute, creation, linalg, logic, manipulation, math, random, search, stat
from fleet_mpi.paddle.tensor.attribute import numel, rank, shape
from fleet_mpi.paddle.tensor.creation import (arange, assign, create_tensor, diag, diagflat, empty, empty_like, eye,
                                              fill_constant, full, full_like, linspace, meshgrid, ones, ones_like, tril,
                                              triu, zeros, zeros_like)
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

__getattr__ = _missing_name("paddle.tensor", globals(), _OF_1X)
