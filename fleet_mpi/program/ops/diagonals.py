"""Diagonals of matrices: taken out, put in, summed."""

from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.manipulation import axis_of


def places(xp, rows, columns, offset):
    """(row numbers, column numbers) of a diagonal of a matrix of these sizes."""
    count = diagonal_size(rows, columns, offset)
    numbers = xp.arange(count, dtype="int64")
    return numbers + max(-offset, 0), numbers + max(offset, 0)


def diagonal_size(rows, columns, offset):
    """How long a diagonal is; -1 where a size is unknown."""
    if -1 in (rows, columns):
        return -1
    return max(min(rows - max(-offset, 0), columns - max(offset, 0)), 0)


def matrices(k, array, first, second):
    """The array as a stack of matrices whose rows lie along one axis and whose columns along another."""
    axes = [axis_of(k, k.attr(name), array.ndim) for name in (first, second)]
    return k.xp.moveaxis(array, axes, (-2, -1))


def two_axes(k, rank, first, second):
    """The two axes counted from 0; they must differ."""
    one, other = (axis_of(k, k.attr(name), rank) for name in (first, second))
    if one == other:
        k.fail(f"expected two different axes, got {k.attr(first)} and {k.attr(second)} of {rank} dimensions")
    return one, other


def diagonal_of(k, stack):
    """The index of the op's diagonal in a stack of matrices."""
    return (..., *places(k.xp, *stack.shape[-2:], int(k.attr("offset"))))


@op("trace", "Input", attrs={"offset": 0, "axis1": 0, "axis2": 1})
class Trace:
    """The sum of a diagonal; of more than two dimensions, one for each matrix."""

    def infer(k):
        """Without the two dimensions; [1] where none is left."""
        shape = k.shape("Input")
        axes = two_axes(k, len(shape), "axis1", "axis2")
        k.set("Out", [size for i, size in enumerate(shape) if i not in axes] or [1], lod=() if 0 in axes else None)

    def run(k):
        x, xp = matrices(k, k["Input"], "axis1", "axis2"), k.xp
        index, out = diagonal_of(k, x), k["Out"].reshape(x.shape[:-2])
        return lambda: xp.sum(x[index], axis=-1, out=out)

    def grad(k):
        """Each element of the diagonal gets all of it."""
        dx, xp = k["Input@GRAD"], k.xp
        moved = matrices(k, dx, "axis1", "axis2")
        index, dout = diagonal_of(k, moved), k["Out@GRAD"].reshape(moved.shape[:-2] + (1,))
        count = diagonal_size(*moved.shape[-2:], int(k.attr("offset")))
        return lambda: (dx.fill(0), moved.__setitem__(index, xp.broadcast_to(dout, moved.shape[:-2] + (count,))))


@op("diag_embed", "Input", attrs={"offset": 0, "dim1": -2, "dim2": -1})
class DiagEmbed:
    """Matrices with the last dimension of Input on a diagonal, their rows along ``dim1``, columns along ``dim2``."""

    def infer(k):
        """One dimension more; the two of the matrices are as large as the diagonal needs."""
        shape = list(k.shape("Input"))
        size = shape.pop()
        wide = -1 if size == -1 else size + abs(int(k.attr("offset")))
        for axis in sorted(two_axes(k, len(shape) + 2, "dim1", "dim2")):
            shape.insert(axis, wide)
        k.set("Out", shape, lod=())

    def run(k):
        """Clear, then fill the diagonals."""
        x, out = k["Input"], k["Out"]
        moved = matrices(k, out, "dim1", "dim2")
        index = diagonal_of(k, moved)
        return lambda: (out.fill(0), moved.__setitem__(index, x))

    def grad(k):
        dx, xp = k["Input@GRAD"], k.xp
        moved = matrices(k, k["Out@GRAD"], "dim1", "dim2")
        index = diagonal_of(k, moved)
        return lambda: xp.copyto(dx, moved[index])


@op("diag_v2", "X", attrs={"offset": 0, "padding_value": 0.0})
class DiagV2:
    """A matrix with the vector X on a diagonal and a value beside it; or a diagonal of the matrix X."""

    def infer(k):
        """Of a vector a square, of a matrix a vector."""
        shape, offset = k.shape("X"), int(k.attr("offset"))
        if len(shape) == 1:
            k.set("Out", [-1 if shape[0] == -1 else shape[0] + abs(offset)] * 2, lod=())
        elif len(shape) == 2:
            k.set("Out", [diagonal_size(*shape, offset)], lod=())
        else:
            k.fail(f"expected a vector or a matrix, got {list(shape)}; take diag_embed for more dimensions")

    def run(k):
        """Fill and put in, or take out."""
        x, out, xp = k["X"], k["Out"], k.xp
        if x.ndim == 2:
            index = diagonal_of(k, x)
            return lambda: xp.copyto(out, x[index])
        index, value = diagonal_of(k, out), k.attr("padding_value")
        return lambda: (out.fill(value), out.__setitem__(index, x))

    def grad(k):
        """The same in the other direction, zeros beside it."""
        dx, dout, xp = k["X@GRAD"], k["Out@GRAD"], k.xp
        if dx.ndim == 1:
            index = diagonal_of(k, dout)
            return lambda: xp.copyto(dx, dout[index])
        index = diagonal_of(k, dx)
        return lambda: (dx.fill(0), dx.__setitem__(index, dout))
