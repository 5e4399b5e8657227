"""The one gate for arrays from outside: whatever shows its memory becomes a numpy array over the same memory.

Taken are numpy's arrays and anything with the buffer protocol, ``__array_interface__`` or DLPack, on the host. What
cannot be taken is refused with a sentence that begins with ``what``, the caller's words for the array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fleet_mpi.errors import UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

FLOATS = (np.dtype("float32"), np.dtype("float64"))


def view_of(thing: Any, what: str) -> np.ndarray:
    """A numpy array over the memory of an array, never a copy."""
    if isinstance(thing, np.ndarray):
        return thing
    if hasattr(thing, "__cuda_array_interface__"):
        raise UsageError(f"{what}: it lies on a device; arrays are taken from the host here: copy it there")
    try:
        return _opened(thing)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise UsageError(f"{what}: expected an array (numpy's, or anything with the buffer protocol, "
                         f"__array_interface__ or DLPack), got {type(thing).__name__}: {error}") from None


def _opened(thing: Any) -> np.ndarray:
    if hasattr(thing, "__array_interface__"):
        return np.asarray(thing)
    try:
        return np.asarray(memoryview(thing))
    except TypeError:
        if not hasattr(thing, "__dlpack__"):
            raise
    return np.from_dlpack(thing)


def floats(thing: Any, what: str) -> np.ndarray:
    """A view of an array of float32 or float64."""
    array = view_of(thing, what)
    if array.dtype not in FLOATS:
        raise UsageError(f"{what}: expected float32 or float64, got {array.dtype}")
    return array


def to_fill(thing: Any, what: str) -> np.ndarray:
    """A view of an array that is written to."""
    array = view_of(thing, what)
    if not array.flags.writeable:
        raise UsageError(f"{what}: its memory is read-only, and it is to be written to: give a copy that may be")
    return array


def like(thing: Any, shape: tuple[int, ...], dtype: Any, what: str) -> np.ndarray:
    """A view of an array that has to have this shape and type."""
    array = view_of(thing, what)
    if array.shape != tuple(shape) or array.dtype != dtype:
        raise UsageError(f"{what}: expected {np.dtype(dtype)} {list(shape)}, got {array.dtype} {list(array.shape)}")
    return array


def ids(thing: Any, what: str) -> np.ndarray:
    """Whole numbers as int64; a list will do."""
    array = np.asarray(thing) if isinstance(thing, (list, tuple, int)) else view_of(thing, what)
    if array.size and array.dtype.kind not in "iu":
        raise UsageError(f"{what}: ids are whole numbers, got {array.dtype}")
    return array.astype(np.int64, copy=False)


def named(arrays: Any, what: str) -> dict[str, Any]:
    """{name: array} of a mapping or a list, whose members are called by their numbers."""
    if isinstance(arrays, Mapping):
        for name in arrays:
            if not isinstance(name, str) or not name:
                raise UsageError(f"{what}: names are texts, got {name!r}")
        return dict(arrays)
    if isinstance(arrays, Sequence) and not isinstance(arrays, (str, bytes, bytearray)):
        return {str(number): one for number, one in enumerate(arrays)}
    raise UsageError(f"{what}: expected {{name: array}} or a list of arrays, got {type(arrays).__name__}")


def refuse_unknown(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """UsageError for the first name that is not among those known."""
    known = list(known)
    for name in given:
        if name not in known:
            raise UsageError(f"{what}: there is no {name!r}; {nearest(name, known)}")
