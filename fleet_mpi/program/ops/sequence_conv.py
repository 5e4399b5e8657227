"""Convolution along sequences: each row with its neighbours in the same sequence, times one matrix."""

from fleet_mpi.errors import NotBuilt
from fleet_mpi.kernels.products import product
from fleet_mpi.kernels.reference import sequence as kernels
from fleet_mpi.program.engine import lod_rows
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.sequence import forward_level, last_level


@op("sequence_conv", "X Filter PaddingData?", no_grad="PaddingData", grad_reads="X Filter",
    attrs={"contextLength": 1, "contextStart": 0, "contextStride": 1, "paddingTrainable": False})
class SequenceConv:
    """Rows from ``contextStart`` on, ``contextLength`` of them, side by side and times ``Filter``.

    What lies before or behind the sequence counts as zeros.
    """

    def infer(k):
        """[rows, filters]; the LoD stays."""
        _refuse_what_is_not_built(k)
        x, filter, length = k.shape("X"), k.shape("Filter"), k.attr("contextLength")
        if len(x) != 2 or len(filter) != 2:
            k.fail(f"expected matrices X and Filter, got {list(x)} and {list(filter)}")
        if x[1] >= 0 and filter[0] != length * x[1]:
            k.fail(f"Filter: expected {length} rows of context x {x[1]} columns of X = {length * x[1]} rows, "
                   f"got {list(filter)}")
        if k.concrete:
            last_level(k, "X")
        k.set("Out", (x[0], filter[1]), lod=k.lod("X"))

    def run(k):
        """Windows into scratch memory, then one product."""
        columns, fill = _windows(k, last_level(k, "X"))
        multiply = product(columns, k["Filter"], k["Out"])
        return lambda: (fill(), multiply())

    def grad(k):
        """The windows are made again rather than kept: they are contextLength times as large as X."""
        dout, dfilter, dx = k["Out@GRAD"], k["Filter@GRAD"], k["X@GRAD"]
        level = forward_level(k, "X")
        columns, fill = _windows(k, level)
        for_filter = None if dfilter is None else product(columns.T, dout, dfilter)
        if dx is None:
            return lambda: (fill(), for_filter())
        for_windows = product(dout, k["Filter"].T, columns)
        windows = columns.reshape(dx.shape[0], k.attr("contextLength"), dx.shape[1])
        offsets, start = lod_rows.offsets_array(level, k.xp), k.attr("contextStart")
        add = kernels.add_windows.pick(dout)
        if dfilter is None:
            return lambda: (for_windows(), add(windows, offsets, start, dx))
        return lambda: (fill(), for_filter(), for_windows(), add(windows, offsets, start, dx))


def _windows(k, level):
    """Scratch memory for all windows as a matrix, and the call that fills it."""
    x, length, start = k["X"], k.attr("contextLength"), k.attr("contextStart")
    columns = k.scratch((x.shape[0], length * x.shape[1]), x.dtype)
    windows = columns.reshape(x.shape[0], length, x.shape[1])
    offsets, fill = lod_rows.offsets_array(level, k.xp), kernels.windows.pick(x)
    return columns, lambda: fill(x, offsets, start, 0, windows)


def _refuse_what_is_not_built(k):
    if k.attr("contextStride") != 1:
        k.fail(f"contextStride: expected 1 (the original has no other), got {k.attr('contextStride')}")
    if k.attr("paddingTrainable"):
        raise NotBuilt(f"{k.op}: paddingTrainable is not built; sequences are padded with zeros")
