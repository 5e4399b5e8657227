"""The TensorDesc message inside a tensor file: dtype and shape in protobuf's encoding, by hand.

Field 1 is the data type (varint), field 2 the sizes of the axes (int64, one field each; a packed
list is understood too). Two fields do not justify a dependency on protobuf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import DTypeLike

# The numbers are the original's VarType enum.
NUMBER_OF_DTYPE = {np.dtype(name): number for name, number in (
    ("bool", 0), ("int16", 1), ("int32", 2), ("int64", 3), ("float16", 4), ("float32", 5),
    ("float64", 6), ("uint8", 20), ("int8", 21))}
_DTYPE_OF_NUMBER = {number: dtype for dtype, number in NUMBER_OF_DTYPE.items()}

_TYPE_TAG, _DIM_TAG, _PACKED_DIMS_TAG = 0x08, 0x10, 0x12
_LONGEST_VARINT = 10
_MOST_AXES = 64  # numpy has no more; a longer list is a damaged file


class NoTensorDesc(ValueError):
    """Bytes that are no TensorDesc; the caller knows the file and says so."""


def encode(dtype: DTypeLike, shape: Iterable[int]) -> bytes:
    """The message for an array of this dtype and shape."""
    number = NUMBER_OF_DTYPE.get(np.dtype(dtype).newbyteorder("="))
    if number is None:
        known = ", ".join(str(known) for known in NUMBER_OF_DTYPE)
        raise UsageError(f"the tensor file format has no dtype {dtype}; it has: {known}")
    message = bytes([_TYPE_TAG]) + _varint(number)
    for size in shape:
        message += bytes([_DIM_TAG]) + _varint(size)
    return message


def decode(message: bytes) -> tuple[np.dtype, tuple[int, ...]]:
    """(dtype, shape) of a message; raises NoTensorDesc."""
    number: int | None = None
    shape: list[int] = []
    at = 0
    while at < len(message):
        tag = message[at]
        value, at = _read_varint(message, at + 1)
        if tag == _TYPE_TAG:
            number = value
        elif tag == _DIM_TAG:
            shape.append(value)
        elif tag == _PACKED_DIMS_TAG:
            end = at + value
            if end > len(message):
                raise NoTensorDesc(f"expected {value} bytes of axes, got {len(message) - at}")
            while at < end:
                size, at = _read_varint(message[:end], at)
                shape.append(size)
        else:
            raise NoTensorDesc(f"expected field 1 or 2 of a tensor's description, got tag {tag:#x}")
    return _known_dtype(number), _possible_shape(shape)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(message[at:at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            # int64 is written as its two's complement of 64 bits.
            return value - (1 << 64) if value >= 1 << 63 else value, at + index + 1
    raise NoTensorDesc("expected the end of a number in the tensor's description, got none")


def _known_dtype(number: int | None) -> np.dtype:
    if number is None or number not in _DTYPE_OF_NUMBER:
        known = ", ".join(f"{number} {dtype}" for number, dtype in _DTYPE_OF_NUMBER.items())
        raise NoTensorDesc(f"expected a data type out of {known}, got {number}")
    return _DTYPE_OF_NUMBER[number]


def _possible_shape(shape: list[int]) -> tuple[int, ...]:
    if len(shape) > _MOST_AXES or any(size < 0 for size in shape):
        raise NoTensorDesc(f"expected at most {_MOST_AXES} axes of size 0 or more, got {shape[:8]}")
    return tuple(shape)
