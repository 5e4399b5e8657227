"""``fluid.annotations``: marks for what should no longer be called."""

import functools as _functools

from fleet_mpi import notices
from fleet_mpi.errors import missing_name as _missing_name


def deprecated(since, instead, extra_message=""):
    """Decorator: a function's first call logs that another should be called instead."""
    def decorate(function):
        @_functools.wraps(function)
        def call(*args, **kwargs):
            notices.once(("deprecated", function), f"{function.__name__} is deprecated since {since}; take {instead}. "
                                                   f"{extra_message}".rstrip())
            return function(*args, **kwargs)
        return call
    return decorate


__getattr__ = _missing_name("paddle.fluid.annotations", globals())
