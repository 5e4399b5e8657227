"""Reads pickles that hold plain values and numpy arrays, and refuses all others.

A pickle can name any function to be called on loading, and can call numpy's own in ways that crash the process. Data
files (CIFAR, files of ``split``) need arrays and numbers only: what they ask numpy for is answered by functions of this
file, which look at every argument, and the arrays are put in their places at the end.
"""

import io
import math
import pickle
import pickletools
import re

import numpy as np

from fleet_mpi.errors import CheckpointDamaged, UsageError

_PLAIN_DTYPE = re.compile(r"[<>|=]?([?]|b1|[iu][1248]|f(2|4|8|16)|c(8|16|32)|S[1-9]\d{0,8}|U[1-9]\d{0,7})")
_PUTS = ("PUT", "BINPUT", "LONG_BINPUT")


def load(file, encoding="ASCII"):
    """Load one object; ``encoding`` is for text of Python 2, as in ``pickle.load``.

    Raises UsageError where the pickle asks for anything but arrays and plain values, CheckpointDamaged where it is
    none.
    """
    try:
        content = _checked(file.read())
        return _finished(_Restricted(io.BytesIO(content), encoding=encoding).load(), {})
    except UsageError:
        raise
    # Whatever the unpickler makes of bytes that are damaged or no pickle.
    except Exception as error:
        raise CheckpointDamaged(f"{getattr(file, 'name', None) or 'a data file'}: damaged, or no pickle: "
                                f"{type(error).__name__}: {error}") from None


def _checked(content):
    """The bytes, if what they say about sizes can be true: the unpickler would reserve memory for whatever they say."""
    count = 0
    for count, (code, argument, _) in enumerate(pickletools.genops(content)):
        if code.name in _PUTS and argument > count:
            raise ValueError(f"object {argument} of at most {count}")
    return content


class _Dtype:
    """An element type on its way: its name, then its byte order."""

    __slots__ = ("dtype",)

    def __init__(self, name):
        name = name.decode("ascii") if isinstance(name, bytes) else name
        if not isinstance(name, str) or not _PLAIN_DTYPE.fullmatch(name):
            raise UsageError(f"refused to load a pickle with an array of {name!r}: only plain numbers and texts are "
                             f"read from data files")
        self.dtype = np.dtype(name)

    def __setstate__(self, state):
        order = state[1].decode("ascii") if isinstance(state[1], bytes) else state[1]
        if order not in ("<", ">", "|", "="):
            raise ValueError(f"byte order {order!r}")
        self.dtype = self.dtype.newbyteorder(order)


class _Array:
    """An array on its way: made empty, then given its content."""

    __slots__ = ("value",)

    def __init__(self):
        self.value = np.zeros(0)

    def __setstate__(self, state):
        _, shape, dtype, is_fortran, data = state
        self.value = _array(data, dtype, shape, "F" if is_fortran else "C")


def _array(data, dtype, shape, order):
    """A new array of checked bytes."""
    if isinstance(data, str):  # bytes of Python 2, read as latin1
        data = data.encode("latin1")
    if not isinstance(data, (bytes, bytearray)) or not isinstance(dtype, _Dtype) or order not in ("C", "F"):
        raise ValueError(f"an array of {type(data).__name__}, {type(dtype).__name__}, {order!r}")
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"an array of shape {shape!r:.80}")
    if math.prod(shape) * dtype.dtype.itemsize != len(data):
        raise ValueError(f"{len(data)} bytes for an array {dtype.dtype}{list(shape)!r:.80}")
    return np.frombuffer(data, dtype.dtype).reshape(tuple(shape), order=order).copy(order="K")


class _Calls:
    """What a pickle may call, in the place of numpy's functions."""

    array_type = object()  # stands for numpy.ndarray, and can be passed on only

    def rebuilt(self, kind, shape, code):
        """An empty array, whose content follows."""
        return _Array()

    def dtype(self, name, align=False, copy=True):
        """An element type, whose byte order may follow."""
        return _Dtype(name)

    def scalar(self, dtype, data):
        """One number."""
        return _array(data, dtype, (1,), "C")[0]

    def from_buffer(self, data, dtype, shape, order, axis_order=None):
        """A whole array; ``axis_order`` is for arrays that are contiguous in neither order."""
        if order != "K" or axis_order is None:
            return _array(data, dtype, shape, order)
        return _array(data, dtype, shape, "C").transpose(tuple(axis_order))

    def encoded(self, text, encoding="latin1"):
        """Bytes, as old protocols write them."""
        if encoding not in ("latin1", "latin-1"):
            raise UsageError(f"refused to load a pickle that encodes text as {encoding!r}")
        return text.encode("latin1")

    def no_bytes(self):
        """As old protocols write them."""
        return b""


def _allowed():
    calls = _Calls()
    table = {("numpy", "ndarray"): calls.array_type, ("numpy", "dtype"): calls.dtype,
             ("_codecs", "encode"): calls.encoded, ("__builtin__", "bytes"): calls.no_bytes,
             ("builtins", "bytes"): calls.no_bytes}
    # Their modules moved with numpy 2.
    for package in ("numpy.core", "numpy._core"):
        table[package + ".multiarray", "_reconstruct"] = calls.rebuilt
        table[package + ".multiarray", "scalar"] = calls.scalar
        table[package + ".numeric", "_frombuffer"] = calls.from_buffer
    return table


class _Restricted(pickle.Unpickler):

    allowed = _allowed()

    def find_class(self, module, name):
        try:
            return self.allowed[module, name]
        except KeyError:
            raise UsageError(
                f"refused to load a pickle that asks for {module}.{name}: only plain values and numpy "
                "arrays are read from data files") from None


def _finished(value, seen):
    """The value with arrays in the places of what stands for them; ``seen`` has the containers that were visited."""
    kind = type(value)
    if kind is _Array:
        return value.value
    if kind not in (list, dict, tuple):
        if kind is _Dtype or callable(value) or value is _Calls.array_type:
            raise UsageError("refused to load a pickle that holds more than plain values and numpy arrays")
        return value
    if id(value) not in seen:
        seen[id(value)] = value
        seen[id(value)] = _filled(value, kind, seen)
    return seen[id(value)]


def _filled(value, kind, seen):
    if kind is tuple:
        return tuple(_finished(one, seen) for one in value)
    if kind is list:
        value[:] = [_finished(one, seen) for one in value]
    else:
        found = {_finished(key, seen): _finished(one, seen) for key, one in value.items()}
        value.clear()
        value.update(found)
    return value
