"""Inverses and roots of matrices, Kronecker and vector products."""

import numpy as np

from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.manipulation import axis_of


def infer_square(k, slot, out):
    """As the (stack of) square matrices given."""
    shape = k.shape(slot)
    if len(shape) < 2 or shape[-1] != shape[-2] and -1 not in shape[-2:]:
        k.fail(f"expected square matrices in {slot}, got {list(shape)}")
    k.set(out, shape)


def refusing(k, call, what):
    """The call, with numpy's refusal said as a sentence about the op; a device computes NaN instead."""
    def run():
        try:
            call()
        except np.linalg.LinAlgError:
            k.fail(f"expected {what}, got one that is not")
    return run


def transposed(stack):
    """Each matrix of a stack turned."""
    return stack.swapaxes(-1, -2)


@op("inverse", "Input", "Output", grad_reads="Output")
class Inverse:
    """The inverse of each matrix."""

    def infer(k):
        infer_square(k, "Input", "Output")

    def run(k):
        x, out, xp = k["Input"], k["Output"], k.xp
        return refusing(k, lambda: xp.copyto(out, xp.linalg.inv(x)), "matrices that have an inverse")

    def grad(k):
        """- Y^T dY Y^T, Y being the inverse."""
        turned, dout, dx, xp = transposed(k["Output"]), k["Output@GRAD"], k["Input@GRAD"], k.xp
        return lambda: xp.negative(xp.matmul(xp.matmul(turned, dout), turned), dx)


@op("cholesky", "X", attrs={"upper": False}, grad_reads="Out")
class Cholesky:
    """L with L L^T = X, or with ``upper`` its transpose; only that triangle of X is read."""

    def infer(k):
        infer_square(k, "X", "Out")

    def run(k):
        x, out, xp = k["X"], k["Out"], k.xp
        # The upper triangle of X is the lower one of its transpose.
        given, made = (transposed(x), transposed(out)) if k.attr("upper") else (x, out)
        return refusing(k, lambda: xp.copyto(made, xp.linalg.cholesky(given)), "symmetric positive definite matrices")

    def grad(k):
        """L^-T P(L^T dL) L^-1 made symmetric, P being the lower triangle with half the diagonal."""
        root, dout, dx, xp = k["Out"], k["Out@GRAD"], k["X@GRAD"], k.xp
        if k.attr("upper"):
            root, dout = transposed(root), transposed(dout)
        half = xp.tril(xp.ones(root.shape[-2:], root.dtype)) - 0.5 * xp.eye(root.shape[-1], dtype=root.dtype)

        def run():
            middle = xp.matmul(transposed(root), dout) * half
            inner = xp.linalg.inv(root)
            found = xp.matmul(xp.matmul(transposed(inner), middle), inner)
            xp.multiply(found + transposed(found), 0.5, dx)
        return run


def interleaved(shape, rank, before):
    """The shape with ones in front up to the rank, and a 1 before or behind each size."""
    led = (1,) * (rank - len(shape)) + tuple(shape)
    return tuple(one for size in led for one in ((1, size) if before else (size, 1)))


@op("kron", "X Y", grad_reads="X Y")
class Kron:
    """The Kronecker product: each element of X times all of Y, over any number of dimensions."""

    def infer(k):
        """The product of the sizes, dimension by dimension."""
        rank = max(len(k.shape("X")), len(k.shape("Y")))
        led = [(1,) * (rank - len(shape)) + tuple(shape) for shape in (k.shape("X"), k.shape("Y"))]
        k.set("Out", [-1 if -1 in pair else pair[0] * pair[1] for pair in zip(*led)], lod=())

    def run(k):
        """One product of stretched views."""
        (x, y, full), xp = factors(k, k["X"], k["Y"]), k.xp
        out = k["Out"].reshape(full)
        return lambda: xp.multiply(x, y, out=out)

    def grad(k):
        """Each factor's is the sum of the other's elements times the gradient."""
        (x, y, full), xp = factors(k, k["X"], k["Y"]), k.xp
        dout, dx, dy = k["Out@GRAD"].reshape(full), k["X@GRAD"], k["Y@GRAD"]
        across, along = (tuple(range(start, len(full), 2)) for start in (1, 0))

        def run():
            if dx is not None:
                xp.copyto(dx, xp.sum(dout * y, axis=across).reshape(dx.shape))
            if dy is not None:
                xp.copyto(dy, xp.sum(dout * x, axis=along).reshape(dy.shape))
        return run


def factors(k, x, y):
    """X and Y as views that stretch to each other, and the shape that they stretch to."""
    rank = max(x.ndim, y.ndim)
    wide, deep = interleaved(x.shape, rank, False), interleaved(y.shape, rank, True)
    return x.reshape(wide), y.reshape(deep), tuple(max(a, b) if a * b else 0 for a, b in zip(wide, deep))


@op("cross", "X Y", attrs={"dim": None}, grad_reads="X Y")
class Cross:
    """The vector product along a dimension of size 3: ``dim``, or the first such."""

    def infer(k):
        x, y = k.shape("X"), k.shape("Y")
        if len(x) != len(y) or any(a != b and -1 not in (a, b) for a, b in zip(x, y)):
            k.fail(f"expected X and Y of one shape, got {list(x)} and {list(y)}")
        if x[vector_axis(k, x)] not in (3, -1):
            k.fail(f"expected a dimension of size 3, got {k.attr('dim')} of {list(x)}")
        k.set("Out", x)

    def run(k):
        x, y, out, xp = k["X"], k["Y"], k["Out"], k.xp
        axis = vector_axis(k, x.shape)
        return lambda: xp.copyto(out, xp.cross(x, y, axis=axis))

    def grad(k):
        """Y x dOut, and dOut x X."""
        x, y, dout, xp = k["X"], k["Y"], k["Out@GRAD"], k.xp
        axis, calls = vector_axis(k, x.shape), []
        for target, one, other in ((k["X@GRAD"], y, dout), (k["Y@GRAD"], dout, x)):
            if target is not None:
                calls.append(lambda target=target, one=one, other=other: xp.copyto(target,
                                                                                   xp.cross(one, other, axis=axis)))
        return lambda: [call() for call in calls]


def vector_axis(k, shape):
    """The dimension that holds the vectors."""
    if k.attr("dim") is not None:
        return axis_of(k, k.attr("dim"), len(shape))
    if 3 not in shape:
        k.fail(f"expected a dimension of size 3, got {list(shape)}")
    return list(shape).index(3)
