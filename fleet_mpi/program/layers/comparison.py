"""Layers that compare and ask; the outputs are bool and take no gradient."""

from fleet_mpi.program.build.layer_helper import LayerHelper


def _asked(type, inputs, out=None, name=None, attrs=None):
    """Add an op whose output is bool, written to ``out`` where one is given."""
    helper = LayerHelper(type, name=name)
    for slot, var in inputs.items():
        helper.require(var, slot.lower())
    if out is None:
        out = helper.create_variable_for_type_inference("bool")
    helper.append_op(type, {slot: [var] for slot, var in inputs.items()}, {"Out": [out]}, attrs)
    out.stop_gradient = True
    return out


def less_than(x, y, force_cpu=None, cond=None):
    """x < y, written to ``cond`` where that is given; a While loop reads it."""
    return _asked("less_than", {"X": x, "Y": y}, cond, attrs={"force_cpu": bool(force_cpu)})


def _comparing(type, sign):
    def layer(x, y, cond=None):
        return _asked(type, {"X": x, "Y": y}, cond)
    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = f"x {sign} y, written to ``cond`` where that is given."
    return layer


less_equal = _comparing("less_equal", "<=")
greater_than = _comparing("greater_than", ">")
greater_equal = _comparing("greater_equal", ">=")
equal = _comparing("equal", "==")
not_equal = _comparing("not_equal", "!=")


def logical_and(x, y, out=None, name=None):
    """Whether both are true."""
    return _asked("logical_and", {"X": x, "Y": y}, out, name)


def logical_or(x, y, out=None, name=None):
    """Whether one is true."""
    return _asked("logical_or", {"X": x, "Y": y}, out, name)


def logical_xor(x, y, out=None, name=None):
    """Whether just one is true."""
    return _asked("logical_xor", {"X": x, "Y": y}, out, name)


def logical_not(x, out=None, name=None):
    """Whether it is false."""
    return _asked("logical_not", {"X": x}, out, name)


def is_empty(x, cond=None):
    """Whether a variable has no elements, one answer."""
    return _asked("is_empty", {"X": x}, cond)


def isfinite(x):
    """Whether all elements are finite, one answer."""
    return _asked("isfinite", {"X": x})


def has_inf(x):
    """Whether an element is infinite, one answer."""
    return _asked("isinf", {"X": x})


def has_nan(x):
    """Whether an element is not a number, one answer."""
    return _asked("isnan", {"X": x})


def equal_all(x, y, name=None):
    """Whether two variables are equal in shape and every element, one answer."""
    return _asked("equal_all", {"X": x, "Y": y}, name=name)


def each_isfinite(x, name=None):
    """Of each element whether it is finite; ``paddle.isfinite``."""
    return _asked("isfinite_v2", {"X": x}, name=name)


def each_isinf(x, name=None):
    """Of each element whether it is infinite; ``paddle.isinf``."""
    return _asked("isinf_v2", {"X": x}, name=name)


def each_isnan(x, name=None):
    """Of each element whether it is not a number; ``paddle.isnan``."""
    return _asked("isnan_v2", {"X": x}, name=name)
