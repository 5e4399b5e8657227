"""Layers of one variable, element by element: activations and elementary functions."""

from fleet_mpi.program.build.initializers import Constant
from fleet_mpi.program.build.layer_helper import LayerHelper


def apply(type, x, name=None, attrs=None):
    """Add an op with the input X and the output Out; returns the output."""
    helper = LayerHelper(type, name=name)
    out = helper.create_variable_for_type_inference(helper.require(x, "x").dtype)
    given = {key: value for key, value in (attrs or {}).items() if value is not None}
    helper.append_op(type, {"X": [x]}, {"Out": [out]}, given)
    return out


def _plain(type, text):
    def layer(x, name=None):
        return apply(type, x, name)
    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = text
    return layer


relu = _plain("relu", "max(x, 0).")
sigmoid = _plain("sigmoid", "1 / (1 + e^-x).")
logsigmoid = _plain("logsigmoid", "log(1 / (1 + e^-x)).")
tanh = _plain("tanh", "The hyperbolic tangent.")
tanh_shrink = _plain("tanh_shrink", "x - tanh(x).")
exp = _plain("exp", "e^x.")
log = _plain("log", "The natural logarithm.")
log2 = _plain("log2", "The logarithm to base 2.")
log10 = _plain("log10", "The logarithm to base 10.")
log1p = _plain("log1p", "log(1 + x).")
sqrt = _plain("sqrt", "The square root.")
rsqrt = _plain("rsqrt", "1 / sqrt(x).")
square = _plain("square", "x^2.")
reciprocal = _plain("reciprocal", "1 / x.")
abs = _plain("abs", "The absolute value.")
sign = _plain("sign", "-1, 0 or 1.")
floor = _plain("floor", "Rounded down; no gradient.")
ceil = _plain("ceil", "Rounded up; no gradient.")
round = _plain("round", "Rounded to the nearest integer, halves away from 0; no gradient.")
sin = _plain("sin", "The sine.")
cos = _plain("cos", "The cosine.")
tan = _plain("tan", "The tangent.")
asin = _plain("asin", "The inverse of the sine.")
acos = _plain("acos", "The inverse of the cosine.")
atan = _plain("atan", "The inverse of the tangent.")
sinh = _plain("sinh", "The hyperbolic sine.")
cosh = _plain("cosh", "The hyperbolic cosine.")
erf = _plain("erf", "The error function.")
softsign = _plain("softsign", "x / (1 + |x|).")
softplus = _plain("softplus", "log(1 + e^x).")
silu = _plain("silu", "x / (1 + e^-x).")


def relu6(x, threshold=6.0, name=None):
    """x held between 0 and the threshold."""
    return apply("relu6", x, name, {"threshold": threshold})


def brelu(x, t_min=0.0, t_max=24.0, name=None):
    """x held between ``t_min`` and ``t_max``."""
    return apply("brelu", x, name, {"t_min": t_min, "t_max": t_max})


def leaky_relu(x, alpha=0.02, name=None):
    """x above 0, alpha x below."""
    return apply("leaky_relu", x, name, {"alpha": alpha})


def elu(x, alpha=1.0, name=None):
    """x above 0, alpha (e^x - 1) below."""
    return apply("elu", x, name, {"alpha": alpha})


def selu(x, scale=None, alpha=None, name=None):
    """elu times a scale; with the values left out, those that keep mean and variance."""
    return apply("selu", x, name, {"scale": scale, "alpha": alpha})


def gelu(x, approximate=False, name=None):
    """x times the normal distribution function of x, or an approximation of that by tanh."""
    return apply("gelu", x, name, {"approximate": bool(approximate)})


def swish(x, beta=1.0, name=None):
    """x / (1 + e^(-beta x))."""
    return apply("swish", x, name, {"beta": beta})


def mish(x, threshold=20.0, name=None):
    """x tanh(log(1 + e^x)); the logarithm is x itself above the threshold."""
    return apply("mish", x, name, {"threshold": float(threshold)})


def hard_sigmoid(x, slope=0.2, offset=0.5, name=None):
    """slope x + offset, held between 0 and 1."""
    return apply("hard_sigmoid", x, name, {"slope": slope, "offset": offset})


def hard_swish(x, threshold=6.0, scale=6.0, offset=3.0, name=None):
    """x times (x + offset held between 0 and the threshold), divided by the scale."""
    return apply("hard_swish", x, name, {"threshold": threshold, "scale": scale, "offset": offset})


def stanh(x, scale_a=0.67, scale_b=1.7159, name=None):
    """scale_b tanh(scale_a x)."""
    return apply("stanh", x, name, {"scale_a": scale_a, "scale_b": scale_b})


def softshrink(x, alpha=None):
    """x brought nearer to 0 by alpha (0.5), 0 where it would pass it."""
    return apply("softshrink", x, attrs={"lambda": alpha})


def hard_shrink(x, threshold=None):
    """x, but 0 where |x| is at most the threshold (0.5)."""
    return apply("hard_shrink", x, attrs={"threshold": threshold})


def thresholded_relu(x, threshold=None):
    """x, but 0 where it is at most the threshold (1.0)."""
    return apply("thresholded_relu", x, attrs={"threshold": threshold})


def soft_relu(x, threshold=40.0, name=None):
    """log(1 + e^x), x held between plus and minus the threshold."""
    return apply("soft_relu", x, name, {"threshold": threshold})


def prelu(x, mode, param_attr=None, name=None):
    """x above 0, alpha x below; alpha is learned: one ("all"), one a "channel", or one an "element" of a sample."""
    helper = LayerHelper("prelu", param_attr=param_attr, name=name)
    shapes = {"all": [1], "channel": [1, *x.shape[1:2], 1, 1], "element": [1, *x.shape[1:]]}
    alpha = helper.create_parameter(helper.param_attr, shapes.get(mode, [1]), x.dtype,
                                    default_initializer=Constant(0.25))
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("prelu", {"X": [x], "Alpha": [alpha]}, {"Out": [out]}, {"mode": mode})
    return out
