"""Sums, means and extremes over dimensions."""

from fleet_mpi.program.registry import op


@op("mean", "X")
class Mean:
    """The mean of all elements, shape [1]."""

    def infer(k):
        """One number."""
        k.set("Out", [1], lod=())

    def run(k):
        """Sum, then one division."""
        x, xp = k["X"].reshape(-1), k.xp
        out, count = k["Out"].reshape(()), float(x.size)
        return lambda: (xp.sum(x, out=out), xp.divide(out, count, out))

    def grad(k):
        """Every element gets the same share."""
        dout, dx, xp = k["Out@GRAD"], k["X@GRAD"], k.xp
        count = float(dx.size)
        return lambda: xp.divide(dout, count, out=dx)
