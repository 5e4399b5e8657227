"""Layers of neural networks: convolution, pooling, normalisation, dropout, softmax."""

import math

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.initializers import Constant, Normal
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.layers.single_op import single_op


def conv2d(input, num_filters, filter_size, stride=1, padding=0, dilation=1, groups=None, param_attr=None,
           bias_attr=None, use_cudnn=True, act=None, name=None, data_format="NCHW"):
    """act(input convolved with ``num_filters`` filters + bias); weights are [filters, channels / groups, h, w]."""
    channels = _channels(input, data_format, "conv2d")
    # The original takes its own depthwise kernel only where cuDNN is not asked for; programs show which.
    depthwise = channels == groups and num_filters % channels == 0 and not use_cudnn
    return _convolution("depthwise_conv2d" if depthwise else "conv2d", 2, input, num_filters, filter_size, stride,
                        padding, dilation, groups, param_attr, bias_attr, act, name, data_format, layer="conv2d")


def conv3d(input, num_filters, filter_size, stride=1, padding=0, dilation=1, groups=None, param_attr=None,
           bias_attr=None, use_cudnn=True, act=None, name=None, data_format="NCDHW"):
    """As conv2d, over depth, height and width."""
    return _convolution("conv3d", 3, input, num_filters, filter_size, stride, padding, dilation, groups, param_attr,
                        bias_attr, act, name, data_format)


def _convolution(type, rank, input, num_filters, filter_size, stride, padding, dilation, groups, param_attr,
                 bias_attr, act, name, data_format, layer=None):
    helper = LayerHelper(layer or type, input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    channels, groups = _channels(input, data_format, type), groups or 1
    if channels % groups or num_filters % groups:
        raise UsageError(f"{type}: expected channels and num_filters to be multiples of groups {groups}, "
                         f"got {channels} and {num_filters}")
    window = per_dimension(filter_size, rank, f"{type}: filter_size")
    default = Normal(0.0, math.sqrt(2.0 / (math.prod(window) * channels)))
    weight = helper.create_parameter(helper.param_attr, [num_filters, channels // groups] + window, input.dtype,
                                     default_initializer=default)
    attrs = window_attrs(type, rank, stride, padding, dilation, groups, data_format)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type, {"Input": [input], "Filter": [weight]}, {"Output": [out]}, attrs)
    return helper.append_activation(_with_bias(helper, out, data_format))


def conv2d_transpose(input, num_filters, output_size=None, filter_size=None, padding=0, stride=1, dilation=1,
                     groups=None, param_attr=None, bias_attr=None, use_cudnn=True, act=None, name=None,
                     data_format="NCHW"):
    """The transpose of conv2d, which enlarges; give the filter's size or the output's."""
    return _transposed("conv2d_transpose", 2, input, num_filters, output_size, filter_size, padding, stride,
                       dilation, groups, param_attr, bias_attr, act, name, data_format)


def conv3d_transpose(input, num_filters, output_size=None, filter_size=None, padding=0, stride=1, dilation=1,
                     groups=None, param_attr=None, bias_attr=None, use_cudnn=True, act=None, name=None,
                     data_format="NCDHW"):
    """As conv2d_transpose, over depth, height and width."""
    return _transposed("conv3d_transpose", 3, input, num_filters, output_size, filter_size, padding, stride,
                       dilation, groups, param_attr, bias_attr, act, name, data_format)


def _transposed(type, rank, input, num_filters, output_size, filter_size, padding, stride, dilation, groups,
                param_attr, bias_attr, act, name, data_format):
    helper = LayerHelper(type, input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    channels, groups = _channels(input, data_format, type), groups or 1
    attrs = window_attrs(type, rank, stride, padding, dilation, groups, data_format)
    if output_size is not None:
        attrs["output_size"] = per_dimension(output_size, rank, f"{type}: output_size")
    if filter_size is not None:
        window = per_dimension(filter_size, rank, f"{type}: filter_size")
    else:
        window = _window_for(type, input, attrs, data_format)
    weight = helper.create_parameter(helper.param_attr, [channels, num_filters // groups] + window, input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type, {"Input": [input], "Filter": [weight]}, {"Output": [out]}, attrs)
    return helper.append_activation(_with_bias(helper, out, data_format))


def _window_for(type, input, attrs, data_format):
    """The filter's size that leads from the input's to ``output_size``."""
    sizes = input.shape[1:-1] if data_format.endswith("C") else input.shape[2:]
    if "output_size" not in attrs or -1 in sizes or attrs["padding_algorithm"] != "EXPLICIT":
        raise UsageError(f"{type}: without filter_size, expected output_size, a known input size and paddings in "
                         f"numbers; got {attrs.get('output_size')}, {input.shape} and {attrs['padding_algorithm']}")
    pads = attrs["paddings"]
    totals = [2 * pad for pad in pads] if len(pads) == len(sizes) else [
        before + after for before, after in zip(pads[::2], pads[1::2])]
    return [(out - (size - 1) * stride + total - 1) // dilation + 1 for out, size, stride, total, dilation in zip(
        attrs["output_size"], sizes, attrs["strides"], totals, attrs["dilations"])]


def pool2d(input, pool_size=-1, pool_type="max", pool_stride=1, pool_padding=0, global_pooling=False, use_cudnn=True,
           ceil_mode=False, name=None, exclusive=True, data_format="NCHW"):
    """The maximum ("max") or mean ("avg") of windows, or with ``global_pooling`` of everything."""
    return _pool("pool2d", 2, input, pool_size, pool_type, pool_stride, pool_padding, global_pooling, ceil_mode, name,
                 exclusive, data_format)


def pool3d(input, pool_size=-1, pool_type="max", pool_stride=1, pool_padding=0, global_pooling=False, use_cudnn=True,
           ceil_mode=False, name=None, exclusive=True, data_format="NCDHW"):
    """As pool2d, over depth, height and width."""
    return _pool("pool3d", 3, input, pool_size, pool_type, pool_stride, pool_padding, global_pooling, ceil_mode, name,
                 exclusive, data_format)


def adaptive_pool2d(input, pool_size, pool_type="max", require_index=False, name=None, data_format="NCHW"):
    """``pool_size`` windows that cover the data evenly."""
    return _adaptive_pool("pool2d", 2, input, pool_size, pool_type, require_index, name, data_format)


def adaptive_pool3d(input, pool_size, pool_type="max", require_index=False, name=None, data_format="NCDHW"):
    """As adaptive_pool2d, over depth, height and width."""
    return _adaptive_pool("pool3d", 3, input, pool_size, pool_type, require_index, name, data_format)


def _pool(type, rank, input, size, kind, stride, padding, whole, ceil_mode, name, exclusive, data_format):
    if size == -1 and not whole:
        raise UsageError(f"{type}: expected pool_size, or global_pooling=True")
    pads, algorithm = paddings_of(padding, rank, data_format, f"{type}: pool_padding")
    return _pooled(type, input, name, {
        "pooling_type": kind, "ksize": [1] * rank if size == -1 else per_dimension(size, rank, f"{type}: pool_size"),
        "strides": per_dimension(stride, rank, f"{type}: pool_stride"), "paddings": pads,
        "padding_algorithm": algorithm, "global_pooling": whole, "ceil_mode": ceil_mode, "exclusive": exclusive,
        "data_format": data_format})


def _adaptive_pool(type, rank, input, size, kind, require_index, name, data_format):
    made = _pooled(type, input, name, {"pooling_type": kind, "adaptive": True, "data_format": data_format,
                                       "ksize": per_dimension(size, rank, f"adaptive_{type}: pool_size")},
                   layer=f"adaptive_{type}")
    return with_mask(made, require_index)


def with_mask(pooled, wanted=True):
    """A pool and where in its plane each maximum lies, counted row by row, int32; or the pool alone."""
    if not wanted:
        return pooled
    mask = pooled.op.output("Mask")
    if not mask or pooled.op.attrs["data_format"].endswith("C"):
        raise UsageError(f"{pooled.op.type}: places are those of maxima with the channel second (NCHW, NCDHW), got "
                         f"pooling type {pooled.op.attrs['pooling_type']!r} and {pooled.op.attrs['data_format']}")
    return pooled, pooled.block.var(mask[0])


def _pooled(type, input, name, attrs, layer=None):
    also = ("Mask",) if attrs["pooling_type"] == "max" else ()
    return single_op(type, {"X": input}, attrs, also=also, name=name, layer=layer)


def batch_norm(input, act=None, is_test=False, momentum=0.9, epsilon=1e-05, param_attr=None, bias_attr=None,
               data_layout="NCHW", in_place=False, name=None, moving_mean_name=None, moving_variance_name=None,
               do_model_average_for_mean_and_var=True, fuse_with_relu=False, use_global_stats=False):
    """act of each channel brought to mean 0 and variance 1, then scaled and shifted.

    ``in_place`` and ``fuse_with_relu`` change nothing: memory and fusion are the plan's business.
    """
    helper = LayerHelper("batch_norm", input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    last = len(input.shape) == 2 or data_layout.endswith("C")
    shape = [input.shape[-1 if last else 1]]
    scale = _parameter_or_constant(helper, helper.param_attr, shape, input.dtype, 1.0, is_bias=False)
    bias = _parameter_or_constant(helper, helper.bias_attr, shape, input.dtype, 0.0, is_bias=True)
    mean, variance = (
        helper.create_parameter(ParamAttr(name=given, initializer=Constant(value), trainable=False,
                                          do_model_average=do_model_average_for_mean_and_var), shape, input.dtype)
        for given, value in ((moving_mean_name, 0.0), (moving_variance_name, 1.0)))
    saved = [helper.create_variable_for_type_inference(input.dtype, stop_gradient=True) for _ in range(2)]
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("batch_norm", {"X": [input], "Scale": [scale], "Bias": [bias], "Mean": [mean],
                                    "Variance": [variance]},
                     {"Y": [out], "MeanOut": [mean], "VarianceOut": [variance], "SavedMean": [saved[0]],
                      "SavedVariance": [saved[1]]},
                     {"momentum": momentum, "epsilon": epsilon, "is_test": is_test, "data_layout": data_layout,
                      "use_global_stats": use_global_stats})
    return helper.append_activation(out)


def _parameter_or_constant(helper, attr, shape, dtype, value, is_bias):
    """A parameter; where the attribute is False, one that is never trained."""
    attr = ParamAttr(trainable=False) if attr is False else attr
    return helper.create_parameter(attr, shape, dtype, is_bias=is_bias, default_initializer=Constant(value))


def layer_norm(input, scale=True, shift=True, begin_norm_axis=1, epsilon=1e-05, param_attr=None, bias_attr=None,
               act=None, name=None):
    """act of each row (all dimensions from ``begin_norm_axis`` on) brought to mean 0 and variance 1."""
    helper = LayerHelper("layer_norm", input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    shape = [math.prod(input.shape[begin_norm_axis:])]
    inputs = {"X": [input]}
    if scale and helper.param_attr is not False:
        inputs["Scale"] = [helper.create_parameter(helper.param_attr, shape, input.dtype,
                                                   default_initializer=Constant(1.0))]
    if shift and helper.bias_attr is not False:
        inputs["Bias"] = [helper.create_parameter(helper.bias_attr, shape, input.dtype, is_bias=True)]
    mean, variance = (helper.create_variable_for_type_inference(input.dtype, stop_gradient=True) for _ in range(2))
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("layer_norm", inputs, {"Y": [out], "Mean": [mean], "Variance": [variance]},
                     {"epsilon": epsilon, "begin_norm_axis": begin_norm_axis})
    return helper.append_activation(out)


def dropout(x, dropout_prob, is_test=False, seed=None, name=None, dropout_implementation="downgrade_in_infer"):
    """Each element zero with this probability while training; other ones at every step unless a seed is given."""
    return single_op("dropout", {"X": x}, also=("Mask",), name=name, attrs={
        "dropout_prob": dropout_prob, "is_test": is_test, "seed": seed or 0, "fix_seed": bool(seed),
        "dropout_implementation": dropout_implementation})


def softmax(input, use_cudnn=False, name=None, axis=-1):
    """Probabilities that sum to one along ``axis``."""
    return single_op("softmax", {"X": input}, {"axis": axis}, name=name)


def log_softmax(input, axis=-1, name=None):
    """The logarithm of softmax."""
    return single_op("log_softmax", {"X": input}, {"axis": axis}, name=name)


def per_dimension(given, rank, what):
    """A list of ``rank`` ints from one int or a list."""
    values = [given] * rank if isinstance(given, int) else list(given)
    if len(values) == 1:
        values = values * rank
    if len(values) != rank:
        raise UsageError(f"{what}: expected one number or {rank}, got {given!r}")
    return [int(value) for value in values]


def paddings_of(padding, rank, data_format, what):
    """(numbers, algorithm) from a number, a list of numbers or pairs, or "SAME" / "VALID"."""
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise UsageError(f"{what}: expected numbers, 'SAME' or 'VALID', got {padding!r}")
        return [0] * rank, padding.upper()
    values = [padding] * rank if isinstance(padding, int) else list(padding)
    if values and isinstance(values[0], (list, tuple)):
        if len(values) == rank + 2:  # with pairs for batch and channel, which must be nothing
            values = values[1:-1] if data_format.endswith("C") else values[2:]
        values = [int(end) for pair in values for end in pair]
    if len(values) == 1:
        values = values * rank
    if len(values) not in (rank, 2 * rank):
        raise UsageError(f"{what}: expected 1, {rank} or {2 * rank} numbers, got {padding!r}")
    return [int(value) for value in values], "EXPLICIT"


def _channels(input, data_format, layer):
    if data_format not in ("NCHW", "NHWC", "NCDHW", "NDHWC"):
        raise UsageError(f"{layer}: expected data_format NCHW or NHWC (NCDHW or NDHWC), got {data_format!r}")
    channels = input.shape[-1 if data_format.endswith("C") else 1]
    if channels < 1:
        raise UsageError(f"{layer}: the number of channels of {input.name!r} {input.shape} must be known")
    return channels


def window_attrs(type, rank, stride, padding, dilation, groups, data_format):
    """The attributes of a convolution op, from what a layer was given."""
    pads, algorithm = paddings_of(padding, rank, data_format, f"{type}: padding")
    return {"strides": per_dimension(stride, rank, f"{type}: stride"), "paddings": pads,
            "dilations": per_dimension(dilation, rank, f"{type}: dilation"), "groups": groups,
            "padding_algorithm": algorithm, "data_format": data_format}


def _with_bias(helper, out, data_format):
    start = len(out.shape) - 1 if data_format.endswith("C") else 1
    return helper.append_bias_op(out, dim_start=start, dim_end=start + 1)
