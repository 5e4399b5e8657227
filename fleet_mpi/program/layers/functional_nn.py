"""Layers under their 2.x names and signatures (``paddle.nn.functional``): the parameters are given, not made."""

import math

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.layers import nn
from fleet_mpi.program.layers.single_op import single_op


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCHW", name=None):
    """``x`` convolved with ``weight`` [filters, channels / groups, h, w], plus a bias per filter."""
    return convolved("conv2d", 2, x, weight, bias, stride, padding, dilation, groups, data_format, name)


def convolved(type, rank, x, weight, bias, stride, padding, dilation, groups, data_format, name):
    """A convolution op of this type, plus a bias per filter."""
    attrs = nn.window_attrs(type, rank, stride, padding, dilation, groups, data_format)
    return _with_bias(single_op(type, {"Input": x, "Filter": weight}, attrs, out="Output", name=name), bias,
                      data_format)


def conv2d_transpose(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1,
                     data_format="NCHW", output_size=None, name=None):
    """The transpose of conv2d; ``weight`` is [channels, filters / groups, h, w]."""
    return transposed("conv2d_transpose", 2, x, weight, bias, stride, padding, output_padding, groups, dilation,
                      data_format, output_size, name)


def transposed(type, rank, x, weight, bias, stride, padding, output_padding, groups, dilation, data_format, output_size,
               name):
    """A transposed convolution op of this type, plus a bias per filter."""
    attrs = nn.window_attrs(type, rank, stride, padding, dilation, groups, data_format)
    extra = nn.per_dimension(output_padding, rank, f"{type}: output_padding")
    if output_size is not None and any(extra):
        raise UsageError(f"{type}: expected output_padding or output_size, got both: {output_padding}, {output_size}")
    if output_size is not None:
        attrs["output_size"] = nn.per_dimension(output_size, rank, f"{type}: output_size")
    if any(extra):
        attrs["output_padding"] = extra
    return _with_bias(single_op(type, {"Input": x, "Filter": weight}, attrs, out="Output", name=name), bias,
                      data_format)


def _with_bias(out, bias, data_format):
    if bias is None:
        return out
    return single_op("elementwise_add", {"X": out, "Y": bias}, {"axis": len(out.shape) - 1 if data_format.endswith("C")
                                                                 else 1})


def batch_norm(x, running_mean, running_var, weight, bias, training=False, momentum=0.9, epsilon=1e-05,
               data_format="NCHW", use_global_stats=None, name=None):
    """Batch norm by given parameters; while training the running statistics are updated."""
    helper = LayerHelper("batch_norm", name=name)
    saved = [helper.create_variable_for_type_inference(x.dtype, stop_gradient=True) for _ in range(2)]
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("batch_norm", {"X": [x], "Scale": [weight], "Bias": [bias], "Mean": [running_mean],
                                    "Variance": [running_var]},
                     {"Y": [out], "MeanOut": [running_mean], "VarianceOut": [running_var], "SavedMean": [saved[0]],
                      "SavedVariance": [saved[1]]},
                     {"momentum": momentum, "epsilon": epsilon, "is_test": not training, "data_layout": data_format,
                      "use_global_stats": bool(use_global_stats)})
    return out


def layer_norm(x, normalized_shape, weight=None, bias=None, epsilon=1e-05, name=None):
    """Layer norm over the last dimensions, as many as ``normalized_shape`` has."""
    count = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    return single_op("layer_norm", {"X": x, "Scale": weight, "Bias": bias}, out="Y", also=("Mean", "Variance"),
                     attrs={"begin_norm_axis": len(x.shape) - count, "epsilon": epsilon}, name=name)


def max_pool2d(x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, data_format="NCHW",
               name=None):
    """The maximum of windows, one behind the other unless a stride is given; ``return_mask``: its place too."""
    made = nn.pool2d(x, kernel_size, "max", kernel_size if stride is None else stride, padding, ceil_mode=ceil_mode,
                     name=name, data_format=data_format)
    return nn.with_mask(made, return_mask)


def avg_pool2d(x, kernel_size, stride=None, padding=0, ceil_mode=False, exclusive=True, divisor_override=None,
               data_format="NCHW", name=None):
    """The mean of windows, one behind the other unless a stride is given; ``divisor_override``: their sum over that."""
    made = nn.pool2d(x, kernel_size, "avg", kernel_size if stride is None else stride, padding, ceil_mode=ceil_mode,
                     name=name, exclusive=exclusive, data_format=data_format)
    return divided(made, kernel_size, 2, divisor_override)


def divided(means, kernel_size, rank, divisor):
    """Means of windows as their sums over another number, unless that is None."""
    if divisor is None:
        return means
    count = math.prod(nn.per_dimension(kernel_size, rank, "kernel_size"))
    return single_op("scale", {"X": means}, {"scale": count / divisor})


def adaptive_avg_pool2d(x, output_size, data_format="NCHW", name=None):
    """The mean of ``output_size`` windows that cover the data evenly."""
    return nn.adaptive_pool2d(x, window_counts(x, output_size, 2, data_format), "avg", name=name,
                              data_format=data_format)


def window_counts(x, output_size, rank, data_format):
    """The number of windows along each dimension; None keeps the size."""
    sizes = x.shape[1:-1] if data_format.endswith("C") else x.shape[2:]
    given = list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * rank
    return [size if one is None else one for one, size in zip(given, sizes)] if len(given) == rank else given


def adaptive_max_pool2d(x, output_size, return_mask=False, name=None):
    """The maximum of ``output_size`` windows that cover the data evenly; ``return_mask``: its place too."""
    return nn.adaptive_pool2d(x, window_counts(x, output_size, 2, "NCHW"), "max", require_index=return_mask, name=name)


def softmax(x, axis=-1, dtype=None, name=None):
    """Probabilities that sum to one along ``axis``; computed in ``dtype`` if given."""
    return nn.softmax(_cast(x, dtype), axis=axis, name=name)


def log_softmax(x, axis=-1, dtype=None, name=None):
    """The logarithm of softmax; computed in ``dtype`` if given."""
    return nn.log_softmax(_cast(x, dtype), axis=axis, name=name)


def _cast(x, dtype):
    if dtype is None:
        return x
    return single_op("cast", {"X": x}, {"out_dtype": str(getattr(dtype, "value", dtype))}, dtype=dtype)


def row_conv(input, weight, act=None):
    """Each row plus those behind it, each times a row of ``weight`` [context, width], within each sequence."""
    made = single_op("row_conv", {"X": input, "Filter": weight})
    return single_op(act, {"X": made}) if act else made
