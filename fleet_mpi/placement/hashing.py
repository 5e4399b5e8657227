"""A hash of names that is the same in every process, on every machine and in every version: FNV-1a with 64 bits.

Python's own ``hash`` of a string differs between processes (PYTHONHASHSEED), so two ranks would disagree.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BASIS = 0xcbf29ce484222325
PRIME = 0x100000001b3

# Loading the compiled loop takes longer than hashing this many names in Python (tens of ms).
FEW = 10_000


def fnv1a(name: str) -> int:
    """The hash of one name, of its UTF-8 bytes: a Python integer."""
    value = BASIS
    for byte in name.encode():
        value = (value ^ byte) * PRIME & 0xffffffffffffffff
    return value


def hash_all(names: Sequence[str]) -> np.ndarray:
    """``fnv1a`` of every name: an uint64 array."""
    if len(names) <= FEW:
        return np.array([fnv1a(name) for name in names], np.uint64)
    texts = [name.encode() for name in names]
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    return compiled_hash()(np.frombuffer(b"".join(texts), np.uint8), ends)


def hash_many(data: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """FNV-1a of the texts that lie one after the other in ``data`` and end at ``ends``: the form that numba
    compiles."""
    hashes = np.empty(ends.size, np.uint64)
    begin = 0
    for i in range(ends.size):
        value = np.uint64(BASIS)
        for at in range(begin, ends[i]):
            value = (value ^ np.uint64(data[at])) * np.uint64(PRIME)
        hashes[i] = value
        begin = ends[i]
    return hashes


@functools.cache
def compiled_hash() -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """``hash_many``, compiled: numba is loaded by the first call, not by importing this module."""
    from fleet_mpi.kernels.numba.compiling import compiled

    return compiled(hash_many)
