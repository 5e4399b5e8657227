"""Ops that stand for several: plans hold them, programs never do."""

from fleet_mpi.kernels.reference import casting, fused as kernels
from fleet_mpi.kernels.reference.normalization import channel_view_shape
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.graph.types import is_float
from fleet_mpi.program.ops.elementwise import aligned, infer_binary, operands


@op("fused_elemwise_activation", "X Y", attrs={"axis": -1, "functor_list": ("relu", "elementwise_add")},
    grad_reads="Out", inplace={"Out": "X"}, grad_inplace={"X@GRAD": "Out@GRAD"})
class FusedElemwiseActivation:
    """relu(X + Y). The gradient is for a Y that is a bias over the last dimension: else nothing is gained."""

    def infer(k):
        infer_binary(k)

    def run(k):
        """One pass where Y is as X or a bias per channel; else as the two ops would."""
        (x, y), out, xp = operands(k), k["Out"], k.xp
        in_place = xp.may_share_memory(x, out)
        if tuple(x.shape) == tuple(y.shape) and is_float(x.dtype):
            x, y, out = x.reshape(-1), y.reshape(-1), out.reshape(-1)
            run, change = kernels.add_relu.pick(x), kernels.add_relu_in_place.pick(x)
            return (lambda: change(out, y)) if in_place else (lambda: run(x, y, out))
        view = channels_of(x.shape, aligned(k.shape("Y"), x.ndim, k.attr("axis", -1)))
        if view is None or not is_float(x.dtype):
            return lambda: (xp.add(x, y, out), xp.maximum(out, 0, out=out))
        x, y, out = x.reshape(view), y.reshape(-1), out.reshape(view)
        run, change = kernels.add_bias_relu.pick(x), kernels.add_bias_relu_in_place.pick(x)
        return (lambda: change(out, y)) if in_place else (lambda: run(x, y, out))

    def grad(k):
        """Masked by the output, and summed over the rows for the bias."""
        dout, dx, dbias, xp = k["Out@GRAD"], k["X@GRAD"], k["Y@GRAD"], k.xp
        columns = dout.shape[-1]
        dx = k.scratch(dout.shape, dout.dtype) if dx is None else dx
        dbias = k.scratch((columns,), dout.dtype) if dbias is None else dbias.reshape(-1)
        out, dout, dx = (array.reshape(-1, columns) for array in (k["Out"], dout, dx))
        if xp.may_share_memory(dout, dx):
            change = kernels.bias_relu_backward_in_place.pick(dx)
            return lambda: change(out, dx, dbias)
        run = kernels.bias_relu_backward.pick(dx)
        return lambda: run(out, dout, dx, dbias)


def channels_of(x, y):
    """[rows, channels] or [outer, channels, inner], such that ``y`` (aligned) is a bias per channel; None if not."""
    y = (1,) * (len(x) - len(y)) + tuple(y)
    own = [i for i, size in enumerate(y) if size != 1]
    if len(y) != len(x) or len(own) != 1 or y[own[0]] != x[own[0]]:
        return None
    outer, channels, inner = channel_view_shape(x, own[0])
    return (outer, channels) if inner == 1 else (outer, channels, inner)


@op("cast_all", "X*", "Out*")
class CastAll:
    """Every X in float16: what ``engine.precision`` makes of the casts of parameters."""

    def infer(k):
        """As X but for the type."""
        for i in range(k.count("X")):
            k.set("Out", k.shape("X", i), "float16", index=i)

    def run(k):
        """One call for all."""
        values = k.all("X")
        return casting.cast_all.pick(values[0])(values, k.all("Out"))
