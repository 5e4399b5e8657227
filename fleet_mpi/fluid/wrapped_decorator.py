"""``fluid.wrapped_decorator``: decorators that keep a function's name and signature."""

import contextlib as _contextlib
import functools as _functools

from fleet_mpi.errors import missing_name as _missing_name


def wrap_decorator(decorator_func):
    """A decorator whose results look like what they decorate."""
    def decorate(function):
        return _functools.wraps(function)(decorator_func(function))
    return _functools.wraps(decorator_func)(decorate)


signature_safe_contextmanager = wrap_decorator(_contextlib.contextmanager)

__getattr__ = _missing_name("paddle.fluid.wrapped_decorator", globals())
