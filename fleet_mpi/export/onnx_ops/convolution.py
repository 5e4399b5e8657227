"""Convolution, transposed convolution and pooling over two or three dimensions.

ONNX has the channel in front: other layouts are transposed on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet_mpi.kernels.reference.pooling import out_extent
from fleet_mpi.program.ops.convolution import Shape, channel_first, extra_sizes, is_channel_last, numbers, padding_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fleet_mpi.export.onnx_graph import Step


def with_channel_first(k: Step, slot: str) -> str:
    """The data, channel in front."""
    rank = len(k.shape(slot))
    return k.node("Transpose", k[slot], perm=[0, rank - 1, *range(1, rank - 1)]) if is_channel_last(k) else k[slot]


def put_in_layout(k: Step, slot: str, value: str, rank: int) -> None:
    """Put an output in the op's own layout."""
    k.put(slot, k.node("Transpose", value, perm=[0, *range(2, rank), 1]) if is_channel_last(k) else value)


def pads_of(k: Step, pairs: Sequence[tuple[int, int]], sizes: Sequence[int]) -> dict[str, Any]:
    """The attributes of padding; SAME is worked out when the model runs where sizes are open."""
    if k.attr("padding_algorithm") == "SAME" and -1 in sizes:
        return {"auto_pad": "SAME_UPPER"}
    return {"pads": [before for before, _ in pairs] + [after for _, after in pairs]}


def shape_of(k: Step) -> Shape:
    """What the attributes mean."""
    return Shape(k, channel_first(k.shape("Input"), is_channel_last(k)), k.shape("Filter"))


def bias_of(k: Step) -> list[str]:
    """The third input, if there is one."""
    return [k.reshape(k["Bias"], [-1])] if k.has("Bias") else []


def convolve(k: Step) -> None:
    """The filter slid over the data."""
    shape = shape_of(k)
    made = k.node("Conv", with_channel_first(k, "Input"), k["Filter"], *bias_of(k), kernel_shape=shape.windows,
                  strides=shape.strides, dilations=shape.dilations, group=shape.groups,
                  **pads_of(k, shape.pairs, shape.sizes))
    put_in_layout(k, "Output", made, len(k.shape("Input")))


def convolve_transposed(k: Step) -> None:
    """The gradient of a convolution, used forward."""
    shape = shape_of(k)
    if -1 in shape.sizes and (k.attr("output_size") or k.attr("padding_algorithm") == "SAME"):
        k.refuse("output_size or SAME of data of unknown size")
    extra = list(extra_sizes(k, shape.strides)) if k.attr("output_padding") else [0] * len(shape.sizes)
    if k.attr("output_size"):
        wanted = numbers(k, "output_size", len(shape.sizes))
        extra = [size - least for size, least in zip(wanted, shape.transposed_sizes())]
    made = k.node("ConvTranspose", with_channel_first(k, "Input"), k["Filter"], *bias_of(k),
                  kernel_shape=shape.windows, strides=shape.strides, dilations=shape.dilations, group=shape.groups,
                  output_padding=extra, **pads_of(k, shape.pairs, shape.sizes))
    put_in_layout(k, "Output", made, len(k.shape("Input")))


def pool(k: Step) -> None:
    """The maximum or mean of each window."""
    sizes = channel_first(k.shape("X"), is_channel_last(k))[2:]
    kind = "Max" if k.attr("pooling_type") == "max" else "Average"
    windows = () if k.attr("global_pooling") else numbers(k, "ksize", len(sizes))
    data = with_channel_first(k, "X")
    if k.attr("global_pooling") or k.attr("adaptive") and set(windows) == {1}:
        made = k.node(f"Global{kind}Pool", data)
    elif k.attr("adaptive"):
        made = k.node(f"{kind}Pool", data, **even_windows(k, sizes, windows))
    else:
        made = k.node(f"{kind}Pool", data, **sliding_windows(k, sizes, windows))
    put_in_layout(k, "Out", made, len(k.shape("X")))


def even_windows(k: Step, sizes: Sequence[int], counts: Sequence[int]) -> dict[str, Any]:
    """Adaptive windows that divide the data evenly; ONNX has no others."""
    if any(size < 0 or size % count for size, count in zip(sizes, counts)):
        k.refuse(f"adaptive windows {list(counts)} over data {list(sizes)}, which they do not divide evenly")
    extents = [size // count for size, count in zip(sizes, counts)]
    return {"kernel_shape": extents, "strides": extents}


def sliding_windows(k: Step, sizes: Sequence[int], windows: Sequence[int]) -> dict[str, Any]:
    """Windows of one size. The last ones of ``ceil_mode`` are had by padding, on which all runtimes agree."""
    strides = numbers(k, "strides", len(sizes))
    pairs = padding_pairs(k, sizes, windows, strides)
    is_mean, ceil, attrs = k.attr("pooling_type") == "avg", bool(k.attr("ceil_mode")), {}
    if ceil and -1 not in sizes:
        pairs, ceil = tuple(longer(*one) for one in zip(sizes, windows, strides, pairs)), False
    elif ceil and is_mean and not k.attr("exclusive"):
        k.refuse("a mean with ceil_mode that counts padding, over data of unknown size")
    if is_mean:
        attrs["count_include_pad"] = 0 if k.attr("exclusive") else 1
    return {"kernel_shape": windows, "strides": strides, "ceil_mode": int(ceil), **attrs, **pads_of(k, pairs, sizes)}


def longer(size: int, window: int, stride: int, pair: tuple[int, int]) -> tuple[int, int]:
    """(before, after) with as much after the data as the last window of ``ceil_mode`` needs."""
    count = out_extent(size, window, stride, pair, True)
    return pair[0], max(pair[1], (count - 1) * stride + window - size - pair[0])


CONVERTERS = {
    **dict.fromkeys(("conv2d", "depthwise_conv2d", "conv3d"), convolve),
    **dict.fromkeys(("conv2d_transpose", "depthwise_conv2d_transpose", "conv3d_transpose"), convolve_transposed),
    **dict.fromkeys(("pool2d", "pool3d"), pool),
}
