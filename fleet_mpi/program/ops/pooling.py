"""Maximum and average pooling over two or three spatial dimensions."""

from fleet_mpi.kernels.reference import pooling as kernels
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.convolution import (
    chain,
    channel_first,
    channel_first_copy,
    is_channel_last,
    layout_of,
    numbers,
    padding_pairs,
)
from fleet_mpi.program.ops.widening import in_float32

ATTRS = {"pooling_type": "max", "ksize": [1, 1], "strides": [1, 1], "paddings": [0, 0], "global_pooling": False,
         "ceil_mode": False, "exclusive": True, "adaptive": False, "padding_algorithm": "EXPLICIT",
         "data_format": "NCHW"}
ATTRS_3D = {**ATTRS, "ksize": [1] * 3, "strides": [1] * 3, "paddings": [0] * 3, "data_format": "NCDHW"}


def out_sizes(k, sizes):
    """How many windows there are along each dimension; -1 where the data's size is unknown."""
    if k.attr("global_pooling"):
        return (1,) * len(sizes)
    windows = numbers(k, "ksize", len(sizes))
    if k.attr("adaptive"):
        return windows
    strides = numbers(k, "strides", len(sizes))
    pairs = padding_pairs(k, sizes, windows, strides)
    return tuple(-1 if size < 0 else kernels.out_extent(size, window, stride, pair, k.attr("ceil_mode"))
                 for size, window, stride, pair in zip(sizes, windows, strides, pairs))


def windows_of(k, sizes):
    """The windows for the kernels."""
    if k.attr("global_pooling"):
        return kernels.global_windows(sizes)
    windows = numbers(k, "ksize", len(sizes))
    if k.attr("adaptive"):
        return kernels.adaptive_windows(sizes, windows)
    strides = numbers(k, "strides", len(sizes))
    pairs = padding_pairs(k, sizes, windows, strides)
    return kernels.sliding_windows(sizes, windows, strides, pairs, k.attr("ceil_mode"), k.attr("exclusive"))


class Pool:
    """The maximum or mean of each window. Mask holds where in the image each maximum lies, for the gradient."""

    def infer(k):
        """One number per window and channel."""
        if k.attr("pooling_type") not in ("max", "avg"):
            k.fail(f"pooling_type: expected 'max' or 'avg', got {k.attr('pooling_type')!r}")
        last = is_channel_last(k)
        data = channel_first(k.shape("X"), last)
        sizes = out_sizes(k, data[2:])
        if any(size == 0 or size < -1 for size in sizes):
            k.fail(f"windows {k.attr('ksize')} do not fit into the data {data[2:]}")
        k.set("Out", layout_of(data[:2] + sizes, last), lod=k.lod("X"))
        k.set("Mask", data[:2] + sizes, "int32", lod=())

    @in_float32
    def run(k):
        """One kernel, between transpositions where the channel is last."""
        last = is_channel_last(k)
        x, fill = channel_first_copy(k, k["X"], last)
        out, empty = channel_first_copy(k, k["Out"], last, fill=False)
        windows = windows_of(k, x.shape[2:])
        if k.attr("pooling_type") == "avg":
            mask = k["Mask"]
            unused = None if mask is None else (lambda: mask.fill(-1))
            return chain(fill, kernels.avg_pool_forward(x, out, windows), empty, unused)
        mask = k["Mask"] if k.has("Mask") else k.scratch(out.shape, "int32")
        return chain(fill, kernels.max_pool_forward(x, out, mask, windows), empty)

    @in_float32
    def grad(k):
        """Each window's gradient goes to its maximum, or is shared by all its positions."""
        last = is_channel_last(k)
        dout, fill = channel_first_copy(k, k["Out@GRAD"], last)
        dx, empty = channel_first_copy(k, k["X@GRAD"], last, fill=False)
        windows = windows_of(k, dx.shape[2:])
        if k.attr("pooling_type") == "avg":
            return chain(fill, kernels.avg_pool_backward(dout, dx, windows), empty)
        if not k.has("Mask"):
            k.fail("the gradient of max pooling needs the forward op's Mask: give it that output")
        return chain(fill, kernels.max_pool_backward(dout, k["Mask"], dx, windows), empty)


op("pool2d", "X", "Out Mask?", attrs=ATTRS, grad_reads="Mask")(Pool)
op("pool3d", "X", "Out Mask?", attrs=ATTRS_3D, grad_reads="Mask")(Pool)
