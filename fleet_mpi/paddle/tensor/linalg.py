"""``paddle.tensor.linalg``: products and norms."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers import math as _math
from fleet_mpi.program.layers.math import bmm, dot
from fleet_mpi.program.layers.math import matmul_v2 as matmul


def norm(x, p="fro", axis=None, keepdim=False, name=None):
    """The p-norm along an axis, or of everything; "fro" is the 2-norm."""
    return _math.p_norm(x, 2.0 if p == "fro" else p, axis, keepdim, name)


def mm(input, mat2, name=None):
    """The product of two matrices."""
    return matmul(input, mat2, name=name)


__getattr__ = _missing_name("paddle.tensor.linalg", globals())
