"""Layers over matrices with the argument lists of 2.x: products, inverses, roots, diagonals, distances."""

from fleet_mpi.program.layers import manipulation, math
from fleet_mpi.program.layers.single_op import single_op


def kron(x, y, name=None):
    """The Kronecker product: each element of x times all of y."""
    return single_op("kron", {"X": x, "Y": y}, name=name)


def cross(x, y, axis=None, name=None):
    """The vector product along an axis of size 3, by default the first such."""
    return single_op("cross", {"X": x, "Y": y}, {} if axis is None else {"dim": int(axis)}, name=name)


def dist(x, y, p=2):
    """The p-norm of x - y as one number; p may be 0 or infinite."""
    return math.p_norm(math.elementwise_sub(x, y), p)


def mv(x, vec, name=None):
    """The product of a matrix and a vector."""
    return math.matmul_v2(x, vec, name=name)


def inverse(x, name=None):
    """The inverse of each matrix."""
    return single_op("inverse", {"Input": x}, out="Output", name=name)


def cholesky(x, upper=False, name=None):
    """L with L L^T = x for symmetric positive definite matrices, or with ``upper`` its transpose."""
    return single_op("cholesky", {"X": x}, {"upper": bool(upper)}, name=name)


def trace(x, offset=0, axis1=0, axis2=1, name=None):
    """The sum of a diagonal; of more than two dimensions, one for each matrix."""
    return single_op("trace", {"Input": x}, {"offset": int(offset), "axis1": int(axis1), "axis2": int(axis2)},
                     name=name)


def diag(x, offset=0, padding_value=0, name=None):
    """A matrix with the vector x on a diagonal and ``padding_value`` beside it, or a diagonal of the matrix x."""
    return single_op("diag_v2", {"X": x}, {"offset": int(offset), "padding_value": float(padding_value)}, name=name)


def diagflat(x, offset=0, name=None):
    """A matrix with all elements of x on a diagonal."""
    return diag(x if len(x.shape) == 1 else manipulation.reshape(x, [-1]), offset, name=name)


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Matrices along two dimensions, with the last dimension of ``input`` on a diagonal."""
    return single_op("diag_embed", {"Input": input}, {"offset": int(offset), "dim1": int(dim1), "dim2": int(dim2)})
