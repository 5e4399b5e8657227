"""Row convolution: each row with the rows that follow it in its sequence, column by column."""

from fleet_mpi.kernels.reference import row_conv as kernels
from fleet_mpi.program.engine import lod_rows
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.loss import as_rows
from fleet_mpi.program.ops.sequence import forward_meta


@op("row_conv", "X Filter", grad_reads="X Filter")
class RowConv:
    """Out[i] = the sum over k of X[i + k] * Filter[k] up to the sequence's end.

    X is [rows, width] with a LoD, or [sequences, steps, width] without one.
    """

    def infer(k):
        x, filter = k.shape("X"), k.shape("Filter")
        is_ragged = len(x) == 2 and (k.lod("X") or not k.concrete)
        if not (is_ragged or len(x) == 3) or len(filter) != 2 or -1 != x[-1] != filter[1]:
            k.fail(f"expected sequences X [rows, width] with a LoD or [N, steps, width], and a Filter [context, "
                   f"width], got {list(x)}{'' if k.lod('X') else ' without LoD'} and {list(filter)}")
        k.set("Out", x, lod=k.lod("X"))

    def run(k):
        """One kernel over all sequences."""
        x, out = as_rows(k["X"]), as_rows(k["Out"])
        offsets, filter, run = offsets_of(k, k.meta("X")), k["Filter"], kernels.look_ahead.pick(x)
        return lambda: run(x, offsets, filter, out)

    def grad(k):
        """One kernel for each wanted gradient."""
        x, dout, filter = as_rows(k["X"]), as_rows(k["Out@GRAD"]), k["Filter"]
        offsets, calls = offsets_of(k, forward_meta(k, "X")), []
        if k.has("X@GRAD"):
            dx, data = as_rows(k["X@GRAD"]), kernels.look_ahead_data_grad.pick(dout)
            calls.append(lambda: data(dout, offsets, filter, dx))
        if k.has("Filter@GRAD"):
            dfilter, weight = k["Filter@GRAD"], kernels.look_ahead_weight_grad.pick(x)
            calls.append(lambda: weight(x, dout, offsets, dfilter))
        return lambda: [call() for call in calls]


def offsets_of(k, meta):
    """Where each sequence starts, by the LoD or every so many steps."""
    if len(meta.shape) == 2:
        return lod_rows.offsets_array(meta.lod[-1], k.xp)
    count, steps = meta.shape[:2]
    return lod_rows.offsets_array(tuple(range(0, count * steps + 1, steps)) if steps else (0,) * (count + 1), k.xp)
