"""The original's tensor file format, byte for byte, on any binary stream.

A tensor: uint32 0, uint64 number of LoD levels, per level its size in bytes (uint64) and its offsets
(uint64 each), then the bare tensor: uint32 0, int32 length of a TensorDesc message, the message, the
values in C order. Selected rows: uint32 0, uint64 n, n int64 ids, int64 height, a bare tensor.
Everything is little-endian. Several may follow each other in one stream.

Knows arrays only; which variable a tensor belongs to is for the caller to say.
"""

from __future__ import annotations

import math
import struct
import sys
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.arrays import Rows, to_host
from fleet_mpi.checkpoint.formats import tensor_desc
from fleet_mpi.checkpoint.formats.checked_stream import CheckedStream
from fleet_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Protocol

    from fleet_mpi.arrays import Array
    from fleet_mpi.checkpoint.formats.base import Lod
    from fleet_mpi.checkpoint.formats.checked_stream import BinaryStream
    from fleet_mpi.errors import FleetError

    Refusal = Callable[[str], FleetError]   # makes the error of a sentence

    class Output(Protocol):
        """What takes bytes: a file, a file of a Save, memory."""

        def write(self, data: bytes | memoryview, /) -> object:
            """Append them."""

VERSION = 0
_UINT32, _INT32, _UINT64, _INT64 = (struct.Struct(code) for code in ("<I", "<i", "<Q", "<q"))


def write_tensor(stream: Output, array: Array, lod: Sequence[Sequence[int]] = ()) -> None:
    """Append a tensor; ``lod`` holds the offsets of each level, outermost first."""
    array = to_host(array)
    _check_lod(lod, array.shape, UsageError, "write_tensor: ")
    desc = tensor_desc.encode(array.dtype, array.shape)
    stream.write(_UINT32.pack(VERSION) + _UINT64.pack(len(lod)))
    for level in lod:
        offsets = np.asarray(level, "<u8")
        stream.write(_UINT64.pack(offsets.nbytes) + offsets.tobytes())
    _write_bare(stream, desc, array)


def read_tensor(stream: BinaryStream) -> tuple[np.ndarray, Lod]:
    """Read the tensor that starts here: (array, lod), the lod a tuple of offsets per level.

    Raises CheckpointDamaged, with file, offset and what was expected, if anything does not fit.
    """
    return _read_tensor(CheckedStream(stream))


def read_tensors(stream: BinaryStream) -> Iterator[tuple[np.ndarray, Lod]]:
    """Yield (array, lod) for every tensor up to the end of the stream, which must end after a whole one."""
    source = CheckedStream(stream)
    while not source.at_end():
        yield _read_tensor(source)


def write_rows(stream: Output, rows: Rows) -> None:
    """Append selected rows (``fleet_mpi.arrays.Rows``)."""
    ids, values = np.asarray(to_host(rows.ids), "<i8"), to_host(rows.values)
    _check_row_ids(ids, values.shape, rows.height, UsageError, "write_rows: ")
    desc = tensor_desc.encode(values.dtype, values.shape)
    stream.write(_UINT32.pack(VERSION) + _UINT64.pack(len(ids)) + ids.tobytes())
    stream.write(_INT64.pack(rows.height))
    _write_bare(stream, desc, values)


def read_rows(stream: BinaryStream) -> Rows:
    """Read the selected rows that start here; raises CheckpointDamaged as ``read_tensor`` does."""
    source = CheckedStream(stream)
    _read_version(source, "selected rows")
    count = source.take_number(_UINT64, "number of rows")
    ids = source.take_array((count,), np.dtype("<i8"), "row ids")
    height = source.take_number(_INT64, "height")
    values = _read_bare(source)
    _check_row_ids(ids, values.shape, height, source.damaged)
    return Rows(_native(ids), values, height)


def _write_bare(stream: Output, desc: bytes, array: np.ndarray) -> None:
    stream.write(_UINT32.pack(VERSION) + _INT32.pack(len(desc)) + desc)
    # reshape(-1): a view as bytes needs an axis.
    values = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1)
    stream.write(values.view(np.uint8).data)


def _read_tensor(source: CheckedStream) -> tuple[np.ndarray, Lod]:
    _read_version(source, "tensor")
    levels = source.take_number(_UINT64, "number of LoD levels")
    lod: list[tuple[int, ...]] = []
    # A plain loop, not range(levels): a damaged count may be far above what the file can hold.
    while len(lod) < levels:
        lod.append(_read_level(source))
    array = _read_bare(source)
    _check_lod(lod, array.shape, source.damaged)
    return array, tuple(lod)


def _read_level(source: CheckedStream) -> tuple[int, ...]:
    size_bytes = source.take_number(_UINT64, "size of a LoD level")
    if size_bytes % 8:
        raise source.damaged(f"expected the size of a LoD level to be a multiple of 8, got {size_bytes}")
    return tuple(source.take_array((size_bytes // 8,), np.dtype("<u8"), "LoD offsets").tolist())


def _read_bare(source: CheckedStream) -> np.ndarray:
    _read_version(source, "values")
    size_bytes = source.take_number(_INT32, "length of the tensor's description")
    if size_bytes < 0:
        raise source.damaged(f"expected the length of the tensor's description, got {size_bytes}")
    message = source.take(size_bytes, "tensor's description")
    try:
        dtype, shape = tensor_desc.decode(message)
    except tensor_desc.NoTensorDesc as wrong:
        raise source.damaged(str(wrong)) from None
    values = source.take_array(shape, dtype.newbyteorder("<"), f"values of a {dtype} {list(shape)}")
    if dtype == np.bool_ and values.size and values.view(np.uint8).max() > 1:
        raise source.damaged(f"expected bools to be 0 or 1, got {values.view(np.uint8).max()}")
    return _native(values)


def _read_version(source: CheckedStream, what: str) -> None:
    version = source.take_number(_UINT32, f"version of the {what}")
    if version != VERSION:
        raise source.damaged(f"expected version {VERSION} of the {what}, got {version}")


def _native(array: np.ndarray) -> np.ndarray:
    return array if sys.byteorder == "little" else array.astype(array.dtype.newbyteorder("="))


def _check_lod(lod: Sequence[Sequence[int]], shape: tuple[int, ...], error: Refusal, who: str = "") -> None:
    """Each level starts at 0, never falls, and ends at the number of parts of the level below it."""
    for depth, level in enumerate(lod):
        level = [int(offset) for offset in level]
        if not level or level[0] != 0 or any(b < a for a, b in zip(level, level[1:])):
            raise error(f"{who}expected the offsets of LoD level {depth} to rise from 0, got {level[:8]}")
        below = len(lod[depth + 1]) - 1 if depth + 1 < len(lod) else math.prod(shape[:1])
        if level[-1] != below:
            raise error(f"{who}expected LoD level {depth} to end at {below}, got {level[-1]}")


def _check_row_ids(ids: np.ndarray, shape: tuple[int, ...], height: int, error: Refusal, who: str = "") -> None:
    if shape[:1] != (len(ids),):
        raise error(f"{who}expected values of {len(ids)} rows, got shape {list(shape)}")
    if len(ids) and not 0 <= ids.min() <= ids.max() < height:
        raise error(f"{who}expected row ids from 0 to {height - 1}, got {ids.min()} to {ids.max()}")
