"""``fluid.layers.layer_function_generator``: layers from the op table, and marks on their texts."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.annotations import deprecated as _deprecated
from fleet_mpi.program.layers.generated import generate_layer_fn
from fleet_mpi.program.layers.generated import generate_layer_fn as generate_activation_fn


def autodoc(comment=""):
    """Decorator: put a sentence before a function's text."""
    def decorate(function):
        function.__doc__ = comment + (function.__doc__ or "")
        return function
    return decorate


def templatedoc(op_type=None):
    """Decorator: leave a function as it is; the original fills its text with that of a C++ op."""
    return lambda function: function


def deprecated(func_or_class):
    """Log at the first call that a layer should no longer be called."""
    return _deprecated("1.0", "the layer that its documentation names")(func_or_class)


__getattr__ = _missing_name("paddle.fluid.layers.layer_function_generator", globals())
