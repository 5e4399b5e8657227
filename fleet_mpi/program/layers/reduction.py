"""Layers that reduce dimensions: sums, means, extremes, products."""

from fleet_mpi.program.build.layer_helper import LayerHelper


def _reduced(type, input, dim, keep_dim, name):
    helper = LayerHelper(type, name=name)
    helper.require(input, "input")
    dims = [] if dim is None else list(dim) if isinstance(dim, (list, tuple)) else [dim]
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type, {"X": [input]}, {"Out": [out]},
                     {"dim": dims or [0], "keep_dim": bool(keep_dim),
                      "reduce_all": not dims or len(dims) == len(input.shape)})
    return out


def _reducing(type, text):
    def layer(input, dim=None, keep_dim=False, name=None):
        return _reduced(type, input, dim, keep_dim, name)
    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = text + " over the dimensions ``dim`` (an int or a list; all without one, then shape [1])."
    return layer


reduce_sum = _reducing("reduce_sum", "The sum")
reduce_mean = _reducing("reduce_mean", "The mean")
reduce_max = _reducing("reduce_max", "The largest")
reduce_min = _reducing("reduce_min", "The smallest")
reduce_prod = _reducing("reduce_prod", "The product")
reduce_all = _reducing("reduce_all", "Whether all are true")
reduce_any = _reducing("reduce_any", "Whether one is true")


def mean(x, name=None):
    """The mean of all elements, shape [1]."""
    helper = LayerHelper("mean", name=name)
    out = helper.create_variable_for_type_inference(helper.require(x, "x").dtype)
    helper.append_op("mean", {"X": [x]}, {"Out": [out]})
    return out
