"""Fully connected layers."""

from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.layers.arguments import named_arguments, whole


@named_arguments(activation="act", weight_attr="param_attr", x="input")
def fc(input, size, num_flatten_dims=1, param_attr=None, bias_attr=None, act=None, name=None):
    """act(sum of inputs times weights + bias); inputs are folded after ``num_flatten_dims`` dimensions."""
    size = whole("fc: size", size)
    helper = LayerHelper("fc", input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    inputs = helper.multiple_input()
    attrs = helper.param_attr if isinstance(helper.param_attr, list) else [helper.param_attr] * len(inputs)
    products = [_product(helper, one, size, num_flatten_dims, attr) for one, attr in zip(inputs, attrs)]
    total = products[0]
    if len(products) > 1:
        total = helper.create_variable_for_type_inference(total.dtype)
        helper.append_op("sum", {"X": products}, {"Out": [total]})
    return helper.append_activation(helper.append_bias_op(total, dim_start=num_flatten_dims))


def _product(helper, input, size, num_flatten_dims, attr):
    folds = num_flatten_dims + len(input.shape) if num_flatten_dims < 0 else num_flatten_dims
    columns = 1
    for one in input.shape[folds:]:
        columns *= one
    weight = helper.create_parameter(attr, [columns, size], input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("mul", {"X": [input], "Y": [weight]}, {"Out": [out]},
                     {"x_num_col_dims": folds, "y_num_col_dims": 1})
    return out
