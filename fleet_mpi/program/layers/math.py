"""Layers of arithmetic: between two variables, products of matrices, scaling, norms."""

from fleet_mpi.program.build import (  # noqa: F401  (give variables operators and methods)
    variable_math,
    variable_methods,
)
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.build.variable_arguments import number_given
from fleet_mpi.program.graph.types import as_dtype
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers.activation import apply
from fleet_mpi.program.layers.single_op import single_op


def _elementwise(name, sign):
    type = f"elementwise_{name}"

    def layer(x, y, axis=-1, act=None, name=None):
        return _of_two(type, x, y, {"axis": axis}, name, act)
    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = f"{sign}; y is stretched to x, lying along it from the dimension ``axis`` on."
    return layer


def _of_two(type, x, y, attrs=None, name=None, act=None):
    """Add an op with the inputs X and Y and the output Out; returns the output."""
    helper = LayerHelper(type, name=name, act=act)
    out = helper.create_variable_for_type_inference(helper.require(x, "x").dtype)
    helper.append_op(type, {"X": [x], "Y": [helper.require(y, "y")]}, {"Out": [out]}, attrs)
    return helper.append_activation(out)


elementwise_add = _elementwise("add", "x + y")
elementwise_sub = _elementwise("sub", "x - y")
elementwise_mul = _elementwise("mul", "x * y")
elementwise_div = _elementwise("div", "x / y")
elementwise_max = _elementwise("max", "The larger of x and y")
elementwise_min = _elementwise("min", "The smaller of x and y")
elementwise_pow = _elementwise("pow", "x to the power of y")
elementwise_mod = _elementwise("mod", "The remainder of x / y")
elementwise_floordiv = _elementwise("floordiv", "x / y rounded down")


def mul(x, y, x_num_col_dims=1, y_num_col_dims=1, name=None):
    """The product of two matrices, x and y folded into such after that many dimensions."""
    return _of_two("mul", x, y, {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims}, name)


def matmul(x, y, transpose_x=False, transpose_y=False, alpha=1.0, name=None):
    """alpha times the product of (stacks of) matrices."""
    attrs = {"transpose_X": transpose_x, "transpose_Y": transpose_y, "alpha": float(alpha)}
    return _of_two("matmul", x, y, attrs, name)


def matmul_v2(x, y, transpose_x=False, transpose_y=False, name=None):
    """The product of (stacks of) matrices; ``paddle.matmul``."""
    return _of_two("matmul_v2", x, y, {"trans_x": transpose_x, "trans_y": transpose_y}, name)


def bmm(x, y, name=None):
    """The products of the matrices of two stacks."""
    return _of_two("bmm", x, y, name=name)


def dot(x, y, name=None):
    """The inner products along the last dimension."""
    return _of_two("dot", x, y, name=name)


def scale(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None, name=None):
    """x * scale + bias, or (x + bias) * scale; the scale may be a variable of one element."""
    helper = LayerHelper("scale", name=name, act=act)
    out = helper.create_variable_for_type_inference(helper.require(x, "x").dtype)
    inputs, attrs = {"X": [x]}, {"bias": float(bias), "bias_after_scale": bias_after_scale}
    if isinstance(scale, Variable):
        inputs["ScaleTensor"] = [scale]
    else:
        attrs["scale"] = float(scale)
    helper.append_op("scale", inputs, {"Out": [out]}, attrs)
    return helper.append_activation(out)


def scale_into(x, scale=1.0, bias=0.0, bias_after_scale=True, out=None):
    """The same, written to ``out`` where that is given."""
    helper = LayerHelper("scale")
    out = helper.create_variable_for_type_inference(helper.require(x, "x").dtype) if out is None else out
    attrs = {"scale": float(scale), "bias": float(bias), "bias_after_scale": bias_after_scale}
    helper.append_op("scale", {"X": [x]}, {"Out": [out]}, attrs)
    return out


def pow(x, factor=1.0, name=None):
    """x to a power, a number or a variable of one element."""
    if isinstance(factor, Variable):
        return elementwise_pow(x, factor, name=name)
    return apply("pow", x, name, {"factor": float(factor)})


def cast(x, dtype):
    """x in another element type."""
    helper = LayerHelper("cast")
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op("cast", {"X": [helper.require(x, "x")]}, {"Out": [out]},
                     {"in_dtype": x._dtype.name, "out_dtype": as_dtype(dtype).name})
    return out


def clip(x, min, max, name=None):
    """x held between ``min`` and ``max``, numbers or variables of one element."""
    (low, least), (high, most) = number_given(min, "min", "Min", float), number_given(max, "max", "Max", float)
    return single_op("clip", {"X": x, **low, **high}, {**least, **most}, name=name)


def clip_by_norm(x, max_norm, name=None):
    """x, scaled down where its norm is above ``max_norm``."""
    return apply("clip_by_norm", x, name, {"max_norm": float(max_norm)})


def increment(x, value=1.0, in_place=True):
    """x + value, written back to x unless ``in_place`` is False."""
    if not in_place:
        return apply("increment", x, attrs={"step": float(value)})
    helper = LayerHelper("increment")
    helper.append_op("increment", {"X": [helper.require(x, "x")]}, {"Out": [x]}, {"step": float(value)})
    return x


def sums(input, out=None):
    """The sum of a list of variables, written to ``out`` where that is given."""
    helper = LayerHelper("sum", input=input)
    given = helper.multiple_input()
    if out is None:
        out = helper.create_variable_for_type_inference(given[0].dtype)
    helper.append_op("sum", {"X": given}, {"Out": [out]})
    return out


def sum(x):
    """The sum of a list of variables."""
    return sums(x)


def cumsum(x, axis=None, exclusive=None, reverse=None):
    """Running sums along an axis (the last), with the element itself unless ``exclusive``."""
    return apply("cumsum", x, attrs={"axis": axis, "exclusive": exclusive, "reverse": reverse})


def cos_sim(X, Y):
    """The cosine of the angle between the rows of X and those of Y (or its only one), shape [rows, 1]."""
    helper = LayerHelper("cos_sim")
    out, x_norm, y_norm = (helper.create_variable_for_type_inference(helper.require(X, "X").dtype) for _ in range(3))
    helper.append_op("cos_sim", {"X": [X], "Y": [helper.require(Y, "Y")]},
                     {"Out": [out], "XNorm": [x_norm], "YNorm": [y_norm]})
    return out


def l2_normalize(x, axis, epsilon=1e-12, name=None):
    """x divided by its Euclidean norm along an axis."""
    helper = LayerHelper("l2_normalize", name=name)
    out, norm = (helper.create_variable_for_type_inference(helper.require(x, "x").dtype) for _ in range(2))
    axis = 0 if len(x.shape) == 1 else 1 if axis is None else axis
    helper.append_op("norm", {"X": [x]}, {"Out": [out], "Norm": [norm]}, {"axis": axis, "epsilon": float(epsilon)})
    return out


def p_norm(x, p=2.0, axis=None, keepdim=False, name=None, epsilon=1e-12):
    """The p-norm along an axis, or of all elements without one; ``paddle.norm`` with one axis."""
    attrs = {"porder": float(p), "axis": -1 if axis is None else int(axis), "keepdim": bool(keepdim),
             "asvector": axis is None, "epsilon": float(epsilon)}
    return apply("p_norm", x, name, attrs)


def square_error_cost(input, label):
    """(input - label)^2, element by element."""
    helper = LayerHelper("square_error_cost")
    difference = helper.create_variable_for_type_inference(helper.require(input, "input").dtype)
    helper.append_op("elementwise_sub", {"X": [input], "Y": [helper.require(label, "label")]}, {"Out": [difference]})
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op("square", {"X": [difference]}, {"Out": [out]})
    return out
