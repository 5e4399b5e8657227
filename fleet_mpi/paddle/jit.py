"""``paddle.jit``: static programs from eager code, which is not built: importing it works, calling what it made does
not."""

import functools as _functools

from fleet_mpi.errors import NotBuilt as _NotBuilt
from fleet_mpi.errors import missing_name as _missing_name

_EAGER = "there is no eager mode to translate from; build a static program and run it with an Executor"


def to_static(function=None, input_spec=None, build_strategy=None, property=False, **kwargs):
    """Decorate a function; as in the original, calling it within static programs is refused."""
    if function is None:
        return _functools.partial(to_static, input_spec=input_spec)
    if isinstance(function, type) or not callable(function) or not hasattr(function, "__name__"):
        raise _NotBuilt(f"paddle.jit.to_static: {_EAGER}")
    return _functools.wraps(function)(_functools.partial(_refuse, function.__name__))


def not_to_static(func=None):
    """The function as it is."""
    return not_to_static if func is None else func


def _refuse(name, *args, **kwargs):
    raise _NotBuilt(f"paddle.jit.to_static({name}): {_EAGER}")


__getattr__ = _missing_name("paddle.jit", globals(), refused=dict.fromkeys(
    ("save", "load", "TracedLayer", "TranslatedLayer", "ProgramTranslator", "enable_to_static", "set_code_level",
     "set_verbosity", "ignore_module"), _EAGER))
