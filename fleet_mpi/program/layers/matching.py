"""Layers that match texts word by word: a pair's image, and convolution and pooling over images of any size."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.initializers import Normal
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.layers.nn import per_dimension
from fleet_mpi.program.layers.single_op import single_op


def match_matrix_tensor(x, y, channel_num, act=None, param_attr=None, dtype="float32", name=None):
    """(each pair's image x W y' in every channel, flat in one column; x W) of sequences x and y.

    An image has a row for each row of x, a column for each row of y.
    """
    helper = LayerHelper("match_matrix_tensor", act=act, param_attr=param_attr, name=name)
    widths = [_width(helper, one, argument) for one, argument in ((x, "x"), (y, "y"))]
    if widths[0] != widths[1]:
        raise UsageError(f"match_matrix_tensor: expected as many columns in x and y, got {widths[0]} and {widths[1]}")
    weight = helper.create_parameter(helper.param_attr, [widths[0], channel_num, widths[1]], dtype)
    out = helper.create_variable_for_type_inference(dtype)
    product = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    helper.append_op("match_matrix_tensor", {"X": [x], "Y": [y], "W": [weight]}, {"Out": [out], "Tmp": [product]},
                     {"dim_t": channel_num})
    return helper.append_activation(out), product


def _width(helper, var, argument):
    shape = helper.require(var, argument).shape
    if len(shape) != 2:
        raise UsageError(f"{helper.layer_type}: {argument}: expected rows of numbers, [N, columns] with a LoD, got "
                         f"{list(shape)}")
    return shape[1]


def var_conv_2d(input, row, col, input_channel, output_channel, filter_size, stride=1, param_attr=None, act=None,
                dtype="float32", name=None):
    """Convolution of images of any size, flat in one column; without strides they keep their sizes.

    The lengths of the sequences of ``row`` and ``col`` say how high and wide each image is.
    """
    helper = LayerHelper("var_conv_2d", act=act, param_attr=param_attr, name=name)
    _width(helper, input, "input")
    kernel, strides = (per_dimension(given, 2, f"var_conv_2d: {argument}")
                       for given, argument in ((filter_size, "filter_size"), (stride, "stride")))
    size = int(input_channel) * kernel[0] * kernel[1]
    weight = helper.create_parameter(helper.param_attr, [int(output_channel), size], dtype,
                                     default_initializer=Normal(0.0, (2.0 / size) ** 0.5))
    out = helper.create_variable_for_type_inference(dtype)
    windows = helper.create_variable_for_type_inference(dtype, stop_gradient=True)
    helper.append_op("var_conv_2d", {
        "X": [input], "ROW": [helper.require(row, "row")], "COLUMN": [helper.require(col, "col")], "W": [weight]}, {
        "Out": [out], "Col": [windows]}, {
        "InputChannel": input_channel, "OutputChannel": output_channel, "StrideH": strides[0], "StrideW": strides[1],
        "KernelH": kernel[0], "KernelW": kernel[1]})
    return helper.append_activation(out)


def sequence_topk_avg_pooling(input, row, col, topks, channel_num):
    """For each row of ``row`` the averages of the ``topks`` largest numbers in its row of every channel of its image.

    [rows, channels x topks], with the LoD of ``row``. Where an image is narrower, missing numbers count as 0.
    """
    return single_op("sequence_topk_avg_pooling", {"X": input, "ROW": row, "COLUMN": col},
                     {"topks": list(topks), "channel_num": channel_num}, also=("pos",))
