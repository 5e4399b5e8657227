"""One gate for arrays: which module computes with them, how to make them, how to move them.

Host arrays are numpy's, device arrays cupy's. Both modules answer to the same functions, so code
above asks ``module_of(array)`` and calls that; nothing above imports cupy. Tests register a strict
stand-in for device arrays in the same way. Knows no ops and no programs.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from numpy.typing import DTypeLike

ALIGNMENT_BYTES = 64  # one cache line, and enough for AVX-512
ANY_HEIGHT = -1       # of a table that has a row for every id

# numpy's, or another module's (cupy's) that has the same methods.
Array = np.ndarray

_modules: dict[type, ModuleType] = {np.ndarray: np}


def module_of(array: Array) -> ModuleType:
    """The module (numpy, cupy or a registered stand-in) whose functions take this array."""
    found = _modules.get(type(array))
    if found is None:
        found = _learn(type(array))
    return found


def register(array_type: type, module: ModuleType) -> None:
    """Let ``module`` compute with arrays of ``array_type``."""
    _modules[array_type] = module


def is_host(array: Array) -> bool:
    """Whether the array lies in host memory and numpy computes with it."""
    return module_of(array) is np


def to_host(array: Array) -> np.ndarray:
    """A numpy array with the same values: itself if it is one, else a copy from the device."""
    return array if is_host(array) else module_of(array).asnumpy(array)


def to_module(array: Array, xp: ModuleType) -> Array:
    """The array as one that ``xp`` computes with; copies only between host and device."""
    if module_of(array) is xp:
        return array
    host = to_host(array)
    return host if xp is np else xp.asarray(host)


def aligned(nbytes: int) -> int:
    """The next multiple of a cache line."""
    return -(-nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def empty(shape: int | Sequence[int], dtype: DTypeLike, xp: ModuleType = np) -> Array:
    """A new array of undefined values; on the host its data starts on a cache line."""
    if xp is not np:
        return xp.empty(shape, dtype)
    dtype = np.dtype(dtype)
    size_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.empty(size_bytes + ALIGNMENT_BYTES, np.uint8)
    skip = -raw.ctypes.data % ALIGNMENT_BYTES
    return raw[skip:skip + size_bytes].view(dtype).reshape(shape)


def pinned_like(array: Array, memory: np.ndarray | None = None) -> np.ndarray:
    """A host array like a device's, in page-locked memory (``memory``: of the same size), which copies are quick to."""
    if memory is None:
        pinned = module_of(array).cuda.alloc_pinned_memory(max(1, array.nbytes))
        memory = np.frombuffer(pinned, np.uint8, array.nbytes)
    return memory.reshape(-1).view(np.uint8).view(array.dtype).reshape(array.shape)


def event_of(xp: ModuleType, stream: Any) -> Any:
    """An event that has passed when a stream has come as far as it was told by now."""
    event = xp.cuda.Event(disable_timing=True)
    event.record(stream)
    return event


def cupy_module() -> ModuleType:
    """cupy, imported and registered; ImportError where it is not installed."""
    import cupy
    register(cupy.ndarray, cupy)
    return cupy


def _learn(array_type: type) -> ModuleType:
    for known in (np.ndarray, *_modules):
        if issubclass(array_type, known):
            _modules[array_type] = _modules[known]
            return _modules[known]
    raise TypeError(f"{array_type.__module__}.{array_type.__name__} is no array of numpy or cupy")


class DistantTable:
    """A table whose rows lie elsewhere, with servers: known by shape and type; ``fetch(ids, out)`` fills host rows."""

    __slots__ = ("shape", "dtype", "fetch")

    def __init__(self, shape: Sequence[int], dtype: DTypeLike, fetch: Callable[[np.ndarray, np.ndarray], None]) -> None:
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.fetch = fetch


class Rows:
    """Some rows of a larger array: the gradient of an embedding, or what a sparse push carries.

    ``ids`` (int64 [n]) may repeat; ``values`` is [n, ...]; ``height`` is that of the whole, perhaps ANY_HEIGHT.
    """

    __slots__ = ("ids", "values", "height")

    def __init__(self, ids: Array, values: Array, height: int) -> None:
        self.ids = ids
        self.values = values
        self.height = height

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Rows({len(self.ids)} of {self.height}, {self.values.dtype} {self.values.shape[1:]})"

    def to_dense(self) -> np.ndarray:
        """The whole array, on the host: rows that do not occur being zero, repeated ones summed in order."""
        dense = np.zeros((self.height,) + tuple(self.values.shape[1:]), self.values.dtype)
        np.add.at(dense, to_host(self.ids), to_host(self.values))
        return dense
