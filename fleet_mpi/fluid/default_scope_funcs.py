"""``fluid.default_scope_funcs``: a stack of scopes for each thread, the innermost the current one."""

import threading as _threading

from fleet_mpi.errors import UsageError as _UsageError
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.engine.scope import Scope

_thread = _threading.local()


def get_cur_scope():
    """The innermost scope of this thread."""
    return _stack()[-1]


def enter_local_scope():
    """Let a kid of the current scope be the current one."""
    _stack().append(get_cur_scope().new_scope())


def leave_local_scope():
    """Let the scope around the current one be the current one again; its kids are forgotten."""
    if len(_stack()) < 2:
        raise _UsageError("leave_local_scope: no enter_local_scope came before it")
    _stack().pop()
    get_cur_scope().drop_kids()


def var(name):
    """The variable in the current scope, made if need be."""
    return get_cur_scope().var(name)


def find_var(name):
    """The variable in the current scope or one around it, or None."""
    return get_cur_scope().find_var(name)


def scoped_function(func):
    """Call a function within a scope of its own."""
    enter_local_scope()
    try:
        return func()
    finally:
        leave_local_scope()


def _stack():
    if not hasattr(_thread, "stack"):
        _thread.stack = [Scope()]
    return _thread.stack


__getattr__ = _missing_name("paddle.fluid.default_scope_funcs", globals())
