"""``fluid.layers.tensor``: variables made, filled and joined."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.comparison import has_inf, has_nan, isfinite
from fleet_mpi.program.layers.manipulation import argmax, argmin, argsort, concat, reverse
from fleet_mpi.program.layers.math import cast, sums
from fleet_mpi.program.layers.tensor import (assign, create_global_var, create_parameter, create_tensor, diag, eye,
                                             fill_constant, fill_constant_batch_size_like, linspace, ones, ones_like,
                                             range, zeros, zeros_like)
from fleet_mpi.program.layers.tensor import randperm

_LATE = {"tensor_array_to_tensor": "fleet_mpi.program.layers.tensor_array",
         **dict.fromkeys(("elementwise_equal", "flip", "full", "full_like", "randint", "randn"),
                         "fleet_mpi.program.layers.early_tensor"),
         **dict.fromkeys(("allclose", "meshgrid", "tril", "triu"),
                         "fleet_mpi.program.layers.positions"),
         **dict.fromkeys(("addcmul", "addmm"),
                         "fleet_mpi.program.layers.tensor_products")}

__getattr__ = _missing_name("paddle.fluid.layers.tensor", globals(), _LATE)
