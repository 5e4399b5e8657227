"""Convolution and its transpose over two or three spatial dimensions.

Data is [batch, channel, (depth,) height, width]; the layouts with the channel last are transposed on the way.
"""

import functools
import math

from fleet_mpi.kernels.reference import convolution as kernels, summing
from fleet_mpi.program.graph.registry import op

ATTRS = {"strides": [1, 1], "paddings": [0, 0], "dilations": [1, 1], "groups": 1, "padding_algorithm": "EXPLICIT",
         "data_format": "NCHW"}
ATTRS_3D = {**ATTRS, "strides": [1] * 3, "paddings": [0] * 3, "dilations": [1] * 3, "data_format": "NCDHW"}
READS = {"grad_reads": "Input Filter", "single_grads": "Filter"}


def is_channel_last(k):
    """Whether the data format ends in C; ``AnyLayout`` means that it does not."""
    layout = k.attr("data_format", "NCHW")
    if layout not in ("NCHW", "NHWC", "NCDHW", "NDHWC", "AnyLayout"):
        k.fail(f"data_format: expected NCHW or NHWC (NCDHW or NDHWC with three dimensions), got {layout!r}")
    return layout.endswith("C")


def channel_first(shape, last):
    """The shape with its channel in front."""
    return (shape[0], shape[-1]) + tuple(shape[1:-1]) if last else tuple(shape)


def layout_of(shape, last):
    """The reverse of ``channel_first``."""
    return (shape[0],) + tuple(shape[2:]) + (shape[1],) if last else tuple(shape)


def numbers(k, name, rank):
    """An attribute with one number per dimension; a single one stands for all."""
    given = k.attr(name)
    given = [given] if isinstance(given, int) else list(given)
    if len(given) not in (1, rank):
        k.fail(f"{name}: expected {rank} numbers, got {given}")
    return tuple(int(one) for one in given) * (rank // len(given))


def padding_pairs(k, sizes, windows, strides):
    """(before, after) for each dimension, by the numbers given or by the algorithm SAME or VALID."""
    rank, given = len(sizes), k.attr("paddings", 0)
    algorithm = k.attr("padding_algorithm", "EXPLICIT")
    if algorithm == "SAME":
        return tuple(_same_padding(*one) for one in zip(sizes, windows, strides))
    if algorithm == "VALID":
        return ((0, 0),) * rank
    given = [given] if isinstance(given, int) else list(given)
    if len(given) not in (1, rank, 2 * rank):
        k.fail(f"paddings: expected {rank} or {2 * rank} numbers, got {given}")
    return kernels.padding_pairs(given * rank if len(given) == 1 else given, rank)


def _same_padding(size, window, stride):
    # At build time the size may be unknown: then so is the padding, and nothing depends on it yet.
    total = max((-(-size // stride) - 1) * stride + window - size, 0) if size >= 0 else 0
    return total // 2, total - total // 2


class Shape:
    """What the attributes of a convolution mean for data [N, C, ...] and a filter; sizes may be -1."""

    def __init__(self, k, data, filter):
        rank = len(filter) - 2
        if len(data) != rank + 2:
            k.fail(f"expected Input of {rank + 2} dimensions for the filter {list(filter)}, got {list(data)}")
        self.sizes, self.windows = tuple(data[2:]), tuple(filter[2:])
        self.strides, self.dilations = numbers(k, "strides", rank), numbers(k, "dilations", rank)
        if k.attr("padding_algorithm") == "SAME":
            self.dilations = (1,) * rank  # as the original does
        self.pairs = padding_pairs(k, self.sizes, self.windows, self.strides)
        self.groups = k.attr("groups") or 1

    def out_sizes(self):
        """Of the convolution."""
        return tuple(-1 if size < 0 else kernels.out_extent(size, *rest) for size, *rest in zip(
            self.sizes, self.windows, self.strides, self.pairs, self.dilations))

    def transposed_sizes(self):
        """Of the transposed convolution: the smallest data that the convolution takes to these sizes."""
        return tuple(-1 if size < 0 else (size - 1) * stride - sum(pair) + dilation * (window - 1) + 1
                     for size, window, stride, pair, dilation in zip(
                         self.sizes, self.windows, self.strides, self.pairs, self.dilations))

    @property
    def arguments(self):
        """The last arguments of the kernels."""
        return self.strides, self.pairs, self.dilations, self.groups


def infer_convolution(k):
    """[N, filters, ...]."""
    last, filter = is_channel_last(k), k.shape("Filter")
    data = channel_first(k.shape("Input"), last)
    shape = Shape(k, data, filter)
    if data[1] != -1 and (data[1] != filter[1] * shape.groups or filter[0] % shape.groups):
        k.fail(f"Input has {data[1]} channels in {shape.groups} group(s), but Filter {list(filter)} takes "
               f"{filter[1]} each and has {filter[0]} outputs: expected {filter[1] * shape.groups} channels and a "
               f"multiple of {shape.groups} outputs")
    sizes = shape.out_sizes()
    if any(size == 0 or size < -1 for size in sizes):
        k.fail(f"the window {shape.windows} with dilations {shape.dilations} does not fit into the data {data[2:]} "
               f"with paddings {shape.pairs}")
    k.set("Output", layout_of((data[0], filter[0]) + sizes, last), lod=k.lod("Input"))


def channel_first_copy(k, array, last, fill=True):
    """The array with its channel in front, and the call that fills it (or None where it is the array itself)."""
    if not last:
        return array, None
    xp = k.xp
    moved = xp.moveaxis(array, -1, 1)
    copy = k.scratch(moved.shape, array.dtype)
    return copy, (lambda: xp.copyto(copy, moved)) if fill else (lambda: xp.copyto(moved, copy))


def chain(*calls):
    """One call that makes those that are not None, in order."""
    calls = [call for call in calls if call is not None]
    if len(calls) == 1:
        return calls[0]
    if len(calls) == 2:
        first, second = calls
        return lambda: (first(), second())

    def run():
        for call in calls:
            call()
    return run


def run_convolution(k):
    """One kernel, between transpositions where the channel is last."""
    last = is_channel_last(k)
    x, fill = channel_first_copy(k, k["Input"], last)
    out, empty = channel_first_copy(k, k["Output"], last, fill=False)
    shape = Shape(k, x.shape, k.shape("Filter"))
    convolve = kernels.conv_forward(x, k["Filter"], out, *shape.arguments)
    return chain(fill, convolve, _add_bias(k, out), empty)


def _add_bias(k, out):
    bias, xp = k["Bias"], k.xp
    if bias is None:
        return None
    spread = bias.reshape((1, -1) + (1,) * (out.ndim - 2))
    return lambda: xp.add(out, spread, out)


def run_gradients(k, transposed=False):
    """One kernel for each wanted gradient; a transposed convolution's are those with data and output exchanged."""
    for_data = kernels.conv_forward if transposed else kernels.conv_backward_data
    last = is_channel_last(k)
    x, fill = channel_first_copy(k, k["Input"], last)
    dout, fill_dout = channel_first_copy(k, k["Output@GRAD"], last)
    shape = Shape(k, x.shape, k.shape("Filter"))
    calls = [fill, fill_dout]
    if k.has("Input@GRAD"):
        dx, empty = channel_first_copy(k, k["Input@GRAD"], last, fill=False)
        calls += [for_data(dout, k["Filter"], dx, *shape.arguments), empty]
    if k.has("Filter@GRAD"):
        seen, given = (dout, x) if transposed else (x, dout)
        calls.append(kernels.conv_backward_weight(seen, given, k["Filter@GRAD"], *shape.arguments))
    return chain(*calls, _bias_gradient(k, dout))


def _bias_gradient(k, dout):
    dbias = k["Bias@GRAD"]
    if dbias is None:
        return None
    return functools.partial(summing.sum_of_channels.pick(dout),
                             dout.reshape(*dout.shape[:2], math.prod(dout.shape[2:])),
                             dbias.reshape(-1))


class Convolution:
    """Filter slid over Input; ``groups`` cut the channels into parts that do not see each other."""

    infer, run, grad = infer_convolution, run_convolution, run_gradients


op("conv2d", "Input Filter Bias?", "Output", attrs=ATTRS, **READS)(Convolution)
op("depthwise_conv2d", "Input Filter Bias?", "Output", attrs=ATTRS, **READS)(Convolution)
op("conv3d", "Input Filter Bias?", "Output", attrs=ATTRS_3D, **READS)(Convolution)


class TransposedConvolution:
    """The gradient of a convolution, used forward: Filter is [channels in, filters / groups, ...]."""

    def infer(k):
        """[N, filters, ...], as large as ``output_size`` says or as small as the strides allow."""
        last, filter = is_channel_last(k), k.shape("Filter")
        data = channel_first(k.shape("Input"), last)
        shape = Shape(k, data, filter)
        if data[1] != -1 and data[1] != filter[0]:
            k.fail(f"expected Input of {filter[0]} channels for Filter {list(filter)}, got {data[1]}")
        sizes = shape.transposed_sizes()
        if k.attr("output_padding"):
            sizes = tuple(size if size < 0 else size + more for size, more in zip(sizes, extra_sizes(k, shape.strides)))
        if k.attr("output_size"):
            wanted = numbers(k, "output_size", len(sizes))
            for least, size, stride in zip(sizes, wanted, shape.strides):
                if least != -1 and not least <= size < least + stride:
                    k.fail(f"output_size: expected {least} .. {least + stride - 1}, got {size}")
            sizes = wanted
        k.set("Output", layout_of((data[0], filter[1] * shape.groups) + sizes, last), lod=())

    def run(k):
        """The kernel of a convolution's data gradient."""
        last = is_channel_last(k)
        x, fill = channel_first_copy(k, k["Input"], last)
        out, empty = channel_first_copy(k, k["Output"], last, fill=False)
        shape = Shape(k, x.shape, k.shape("Filter"))
        return chain(fill, kernels.conv_backward_data(x, k["Filter"], out, *shape.arguments),
                     _add_bias(k, out), empty)

    def grad(k):
        """A convolution of the output's gradient, and the weight gradient with data and output exchanged."""
        return run_gradients(k, transposed=True)


def extra_sizes(k, strides):
    """``output_padding``: by how much the output is larger than the strides need, less than one stride."""
    extra = numbers(k, "output_padding", len(strides))
    if any(not 0 <= more < stride for more, stride in zip(extra, strides)):
        k.fail(f"output_padding: expected less than the strides {list(strides)}, got {list(extra)}")
    return extra


SIZES = {"output_size": [], "output_padding": []}
for _type, _attrs in (("conv2d_transpose", ATTRS), ("depthwise_conv2d_transpose", ATTRS),
                      ("conv3d_transpose", ATTRS_3D)):
    op(_type, "Input Filter Bias?", "Output", attrs={**_attrs, **SIZES}, **READS)(TransposedConvolution)
