"""Reads the numeric arrays of a MATLAB version 5 file: as much as the flowers set needs.

The file is a 128-byte header and then elements (type, size, content padded to 8 bytes); matrices may
be compressed each. Cells, structures, sparse and complex matrices are refused.
"""

import struct
import zlib

import numpy as np

from fleet_mpi.errors import UsageError

_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_FIRST_NUMERIC_CLASS = 6
_COMPLEX = 0x0800


def load_arrays(path):
    """All arrays of a file by name, as two-dimensional (or more) numpy arrays."""
    with open(path, "rb") as file:
        content = file.read()
    if len(content) < 128 or content[126:128] not in (b"IM", b"MI"):
        raise UsageError(f"{path}: not a MATLAB version 5 file")
    order = "<" if content[126:128] == b"IM" else ">"
    try:
        return dict(_matrix(body, order) for body in _matrices(content[128:], order))
    except (struct.error, zlib.error, ValueError, KeyError, IndexError) as problem:
        raise UsageError(f"{path}: a matrix that cannot be read: {problem!r}; "
                         "expected plain numeric arrays of MATLAB version 5") from None


def _matrices(content, order):
    for kind, body in _elements(content, order):
        if kind == _COMPRESSED:
            yield from _matrices(zlib.decompress(body), order)
        elif kind == _MATRIX:
            yield body


def _elements(content, order):
    at = 0
    while at + 8 <= len(content):
        kind, size = struct.unpack_from(order + "II", content, at)
        if kind >> 16:  # a small element: size and type share one word, up to 4 bytes follow
            size, kind = kind >> 16, kind & 0xFFFF
            yield kind, content[at + 4:at + 4 + size]
            at += 8
            continue
        yield kind, content[at + 8:at + 8 + size]
        # Compressed elements are the only ones without padding.
        at += 8 + (size if kind == _COMPRESSED else -(-size // 8) * 8)


def _matrix(body, order):
    (_, flags), (_, shape), (_, name), (kind, numbers), *rest = _elements(body, order)
    flags = struct.unpack_from(order + "I", flags)[0]
    if flags & 0xFF < _FIRST_NUMERIC_CLASS or flags & _COMPLEX:
        raise ValueError(f"array {name!r} of class {flags & 0xFF} is not a plain numeric one")
    shape = np.frombuffer(shape, order + "i4")
    values = np.frombuffer(numbers, order + _NUMBERS[kind])
    return name.decode("ascii"), values.reshape(shape, order="F")
