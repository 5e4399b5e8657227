"""Layers that normalise within a sample, across channels, or a weight; and affine maps of channels."""

import math

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.initializers import Constant, Normal
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.layers import activation
from fleet_mpi.program.layers.nn import batch_norm
from fleet_mpi.program.layers.single_op import single_op


def group_norm(input, groups, epsilon=1e-05, param_attr=None, bias_attr=None, act=None, data_layout="NCHW", name=None):
    """act of each group of channels of a sample brought to mean 0 and variance 1, then scaled and shifted."""
    helper = LayerHelper("group_norm", input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    inputs = _with_scale(helper, input, input.shape[-1 if data_layout == "NHWC" else 1])
    attrs = {"groups": groups, "epsilon": epsilon, "data_layout": data_layout}
    return helper.append_activation(_normalised(helper, "group_norm", inputs, ("Mean", "Variance"), attrs))


def instance_norm(input, epsilon=1e-05, param_attr=None, bias_attr=None, name=None):
    """Each channel of each sample brought to mean 0 and variance 1, then scaled and shifted."""
    helper = LayerHelper("instance_norm", input=input, param_attr=param_attr, bias_attr=bias_attr, name=name)
    inputs = _with_scale(helper, input, input.shape[1])
    return _normalised(helper, "instance_norm", inputs, ("SavedMean", "SavedVariance"), {"epsilon": epsilon})


def _with_scale(helper, input, channels):
    """The op's inputs: X, and scale and bias unless their attribute is False."""
    inputs = {"X": [helper.require(input, "input")]}
    if helper.param_attr is not False:
        inputs["Scale"] = [helper.create_parameter(helper.param_attr, [channels], input.dtype,
                                                   default_initializer=Constant(1.0))]
    if helper.bias_attr is not False:
        inputs["Bias"] = [helper.create_parameter(helper.bias_attr, [channels], input.dtype, is_bias=True)]
    return inputs


def _normalised(helper, type, inputs, saved, attrs):
    dtype = inputs["X"][0].dtype
    others = {slot: [helper.create_variable_for_type_inference(dtype, stop_gradient=True)] for slot in saved}
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(type, inputs, {"Y": [out], **others}, attrs)
    return out


def spectral_norm(weight, dim=0, power_iters=1, eps=1e-12, name=None):
    """A weight divided by its largest singular value, found by power iteration from vectors that the layer keeps."""
    helper = LayerHelper("spectral_norm", name=name)
    rows = helper.require(weight, "weight").shape[dim]
    sizes = [rows], [math.prod(weight.shape) // rows]
    u, v = (helper.create_parameter(ParamAttr(trainable=False), size, weight.dtype,
                                    default_initializer=Normal(0.0, 1.0))
            for size in sizes)
    u.stop_gradient = v.stop_gradient = True
    out = helper.create_variable_for_type_inference(weight.dtype)
    helper.append_op("spectral_norm", {"Weight": [weight], "U": [u], "V": [v]}, {"Out": [out]},
                     {"dim": dim, "power_iters": power_iters, "eps": eps})
    return out


def lrn(input, n=5, k=1.0, alpha=1e-4, beta=0.75, name=None, data_format="NCHW"):
    """input / (k + alpha * the squares of ``n`` neighbouring channels, summed) ^ beta."""
    return single_op("lrn", {"X": input}, {"n": n, "k": float(k), "alpha": float(alpha), "beta": float(beta),
                                           "data_format": data_format}, also=("MidOut",), name=name)


def inplace_abn(input, act=None, is_test=False, momentum=0.9, epsilon=1e-05, param_attr=None, bias_attr=None,
                data_layout="NCHW", name=None, moving_mean_name=None, moving_variance_name=None,
                do_model_average_for_mean_and_var=True, use_global_stats=False, act_alpha=1.0):
    """Batch norm, then leaky_relu or elu by ``act_alpha``, or nothing; memory is the plan's business."""
    made = batch_norm(input, None, is_test, momentum, epsilon, param_attr, bias_attr, data_layout, True, name,
                      moving_mean_name, moving_variance_name, do_model_average_for_mean_and_var, False,
                      use_global_stats)
    if act in (None, "identity"):
        return made
    if act not in ("leaky_relu", "elu"):
        raise UsageError(f"inplace_abn: expected act None, 'identity', 'leaky_relu' or 'elu', got {act!r}")
    return activation.apply(act, made, attrs={"alpha": float(act_alpha)})


def affine_channel(x, scale=None, bias=None, data_layout="NCHW", name=None, act=None):
    """act(x scale + bias), both one number per channel and given as variables."""
    helper = LayerHelper("affine_channel", act=act, name=name)
    axis = {"axis": len(x.shape) - 1 if data_layout == "NHWC" else 1}
    for type, values in (("elementwise_mul", scale), ("elementwise_add", bias)):
        if values is not None:
            x = single_op(type, {"X": x, "Y": values}, axis, layer="affine_channel")
    return helper.append_activation(x)
