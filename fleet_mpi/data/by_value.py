"""Pickles for a process of one's own that never runs the script: functions and classes of the script go along by value.

Everything else goes by name, as ever. A spawned process that imported the script to find its classes would run a script
without ``if __name__ == "__main__"`` a second time. Read only what this process, or its own child, has written.
"""

import dis
import functools
import importlib
import io
import marshal
import pickle
import sys
import types

loads = pickle.loads

_SCRIPT = ("__main__", "__mp_main__")
_READS_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL")
# What Python makes itself when a class is made.
_MADE_ANEW = {"__dict__", "__weakref__", "__slots__", "_abc_impl", "__abstractmethods__"}
_SLOT_KINDS = (types.GetSetDescriptorType, types.MemberDescriptorType)
_MADE_BY_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def dumps(value):
    """The bytes of a value. Globals that its functions name, but that cannot be pickled, are left out.

    Raises whatever pickle raises where the value itself cannot be pickled.
    """
    left_out = set()
    while True:
        pickler = _Pickler(left_out)
        try:
            return pickler.written(value)
        except Exception:
            found = pickler.offenders()
            if not found:
                raise
            left_out |= found


class _Pickler(pickle.Pickler):
    """Knows which globals went along, so that those which cannot be written are found."""

    def __init__(self, left_out):
        self._file = io.BytesIO()
        super().__init__(self._file, pickle.HIGHEST_PROTOCOL)
        self._left_out, self._globals = left_out, {}

    def written(self, value):
        """The bytes of a value."""
        self.dump(value)
        return self._file.getvalue()

    def offenders(self):
        """The names of globals, functions and classes aside, that cannot be written."""
        return {name for name, value in self._globals.items()
                if not isinstance(value, (type, types.FunctionType)) and not _can_be_written(value)}

    def reducer_override(self, value):
        """How to write what pickle cannot: modules, wrapped functions, functions and classes of the script."""
        if isinstance(value, types.ModuleType):
            return importlib.import_module, (value.__name__,)
        if isinstance(value, (staticmethod, classmethod)):
            return type(value), (value.__func__,)
        if isinstance(value, property):
            return property, (value.fget, value.fset, value.fdel, value.__doc__)
        if isinstance(value, functools._lru_cache_wrapper) and not _is_importable(value):
            return _cached, (value.__wrapped__, value.cache_parameters())
        if isinstance(value, types.FunctionType) and not _is_importable(value):
            return self._parts_of_function(value)
        if isinstance(value, type) and value.__flags__ & _MADE_BY_PYTHON and not _is_importable(value):
            return _parts_of_class(value)
        return NotImplemented

    def _parts_of_function(self, function):
        cells = function.__closure__ or ()
        made_of = marshal.dumps(function.__code__), function.__module__, function.__name__, len(cells)
        state = {"globals": self._globals_of(function), "cells": [_content(cell) for cell in cells],
                 "fields": {name: getattr(function, name)
                            for name in ("__defaults__", "__kwdefaults__", "__qualname__")},
                 "dict": function.__dict__}
        return _make_function, made_of, state, None, None, _fill_function

    def _globals_of(self, function):
        """What the function's code names, where that is the script's: another module is imported by the reader."""
        if function.__module__ not in _SCRIPT:
            return {}
        known = function.__globals__
        found = {name: known[name] for name in _global_names(function.__code__)
                 if name in known and name not in self._left_out}
        self._globals.update(found)
        return found


def _can_be_written(value):
    try:
        _Pickler(set()).dump(value)
    except Exception:  # pickle has no kind of its own for what it refuses
        return False
    return True


def _is_importable(value):
    """Whether the name of a function or class leads to it, in a module that is not the script."""
    if value.__module__ in _SCRIPT or value.__module__ not in sys.modules:
        return False
    found = sys.modules[value.__module__]
    for part in value.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is value


def _global_names(code):
    names = {step.argval for step in dis.get_instructions(code) if step.opname in _READS_GLOBALS}
    return names.union(*(_global_names(inner) for inner in code.co_consts if isinstance(inner, types.CodeType)))


def _content(cell):
    """A cell's value in a tuple; an empty tuple where it has none yet."""
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


def _parts_of_class(made):
    slots = {"__slots__": made.__slots__} if "__slots__" in vars(made) else {}
    made_of = type(made), made.__name__, made.__bases__, {**slots, "__module__": made.__module__,
                                                          "__qualname__": made.__qualname__}
    state = {name: value for name, value in vars(made).items()
             if name not in _MADE_ANEW and not isinstance(value, _SLOT_KINDS)}
    return _make_class, made_of, state, None, None, _fill_class


def _namespace(module):
    """Where functions of a module look names up; the script's is that of this process's empty ``__main__``."""
    return vars(sys.modules["__main__"] if module in _SCRIPT else importlib.import_module(module))


# Made first and filled afterwards, so that they may name themselves and each other.
def _make_function(code, module, name, cells):
    closure = tuple(types.CellType() for _ in range(cells))
    return types.FunctionType(marshal.loads(code), _namespace(module), name, None, closure)


def _fill_function(function, state):
    if state["globals"]:
        function.__globals__.update(state["globals"])
    for cell, content in zip(function.__closure__ or (), state["cells"]):
        if content:
            cell.cell_contents = content[0]
    for name, value in state["fields"].items():
        setattr(function, name, value)
    function.__dict__.update(state["dict"])


def _make_class(kind, name, bases, body):
    made = kind(name, bases, dict(body))
    if body["__qualname__"] == name and body["__module__"] in _SCRIPT:
        _namespace(body["__module__"])[name] = made  # its instances can go back by name
    return made


def _fill_class(made, state):
    for name, value in state.items():
        setattr(made, name, value)


def _cached(function, parameters):
    return functools.lru_cache(**parameters)(function)
