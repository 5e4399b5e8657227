"""Arguments of layers: what 1.x and 2.x call differently, and numbers that have to be whole."""

import functools
import inspect
from numbers import Integral

from fleet_mpi.errors import UsageError, nearest


def named_arguments(**meant):
    """Decorator: refuse an unknown argument with the word it has here; ``meant``: {the other API's word: ours}."""
    def decorate(function):
        known = inspect.signature(function).parameters

        @functools.wraps(function)
        def call(*args, **kwargs):
            for name in kwargs.keys() - known:
                told = f"it is called {meant[name]!r} here" if name in meant else nearest(name, known)
                raise UsageError(f"{function.__name__} has no argument {name!r}; {told}")
            return function(*args, **kwargs)
        return call
    return decorate


def whole(name, value, least=1):
    """The value, if it is a whole number of at least ``least``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise UsageError(f"{name}: expected a whole number from {least} up, got {value!r}")
    return int(value)
