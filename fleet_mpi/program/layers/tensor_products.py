"""Layers of products beyond those of two matrices, and of products added to something."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.layers.manipulation import reshape
from fleet_mpi.program.layers.math import elementwise_add, elementwise_mul, matmul, matmul_v2, scale
from fleet_mpi.program.layers.single_op import single_op
from fleet_mpi.program.layers.tensor import assign


def addmm(input, x, y, alpha=1.0, beta=1.0, name=None):
    """beta input + alpha x y, with the argument list of 1.x."""
    product = _times(matmul_v2(x, y), alpha)
    return elementwise_add(product, _times(input, beta), name=name)


def addcmul(input, tensor1, tensor2, value=1.0, out=None, name=None):
    """input + value tensor1 tensor2, written to ``out`` where that is given."""
    made = elementwise_add(input, _times(elementwise_mul(tensor1, tensor2), value), name=name)
    return made if out is None else assign(made, out)


def _times(x, factor):
    return x if factor == 1 else scale(x, factor)


def einsum(equation, *operands):
    """The sum of products over the labels that the output does not name, ``"bij,bjk->bik"``."""
    operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    helper = LayerHelper("einsum", input=list(operands))
    given = helper.multiple_input()
    out = helper.create_variable_for_type_inference(helper.input_dtype())
    helper.append_op("einsum", {"Operands": given}, {"Out": [out]}, {"equation": equation})
    return out


def bilinear_tensor_product(x, y, size, act=None, name=None, param_attr=None, bias_attr=None):
    """act(x W_i y + b_i) for ``size`` matrices W_i, row by row."""
    helper = LayerHelper("bilinear_tensor_product", act=act, name=name, param_attr=param_attr, bias_attr=bias_attr)
    weight = helper.create_parameter(helper.param_attr, [size, helper.require(x, "x").shape[1],
                                                         helper.require(y, "y").shape[1]], x.dtype)
    inputs = {"X": [x], "Y": [y], "Weight": [weight]}
    if helper.bias_attr is not False:
        inputs["Bias"] = [helper.create_parameter(helper.bias_attr, [1, size], x.dtype, is_bias=True)]
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("bilinear_tensor_product", inputs, {"Out": [out]})
    return helper.append_activation(out)


def fsp_matrix(x, y):
    """How the channels of two feature maps [N, C, H, W] go together: the mean of their products over all places."""
    places = x.shape[2] * x.shape[3]
    if -1 in x.shape[2:] or x.shape[2:] != y.shape[2:]:
        raise UsageError(f"fsp_matrix: expected two feature maps of one known size, got {x.shape} and {y.shape}")
    return matmul(reshape(x, [0, 0, -1]), reshape(y, [0, 0, -1]), transpose_y=True, alpha=1.0 / places)


def add_position_encoding(input, alpha, beta, name=None):
    """alpha input + beta times sines and cosines of the position, in [N, steps, width] or in sequences."""
    return single_op("add_position_encoding", {"X": input}, {"alpha": float(alpha), "beta": float(beta)}, name=name)
