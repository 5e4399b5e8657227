"""``paddle.tensor.linalg``: products and norms."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.functional_math import mm, norm
from fleet_mpi.program.layers.functional_tensor import t, transpose
from fleet_mpi.program.layers.linear_algebra import cholesky, cross, dist, mv
from fleet_mpi.program.layers.math import bmm, dot
from fleet_mpi.program.layers.math import matmul_v2 as matmul
from fleet_mpi.program.layers.statistics import histogram
from fleet_mpi.program.layers.tensor_products import einsum

__getattr__ = _missing_name("paddle.tensor.linalg", globals())
