"""Reading from a binary stream so that a short or damaged file becomes a sentence.

Never allocates more than the stream can fill: a damaged length asks for no terabytes.
"""

from __future__ import annotations

import io
import math
import os
import struct

import numpy as np

from fleet_mpi.errors import CheckpointDamaged

BinaryStream = io.RawIOBase | io.BufferedIOBase
_PIECE_BYTES = 1 << 24  # what is read at once where the stream cannot tell its length


class CheckedStream:
    """A binary stream that is read in whole pieces; every error has its name and the offset."""

    def __init__(self, stream: BinaryStream) -> None:
        self._stream = stream
        self._name = getattr(stream, "name", None)
        self._offset = 0
        self._left: int | None = None   # the bytes that follow; None where the stream cannot tell
        if stream.seekable():
            self._offset = stream.tell()
            self._left = stream.seek(0, os.SEEK_END) - self._offset
            stream.seek(self._offset)

    def damaged(self, text: str) -> CheckpointDamaged:
        """The error (not raised) that says ``text`` about this stream at this point."""
        where = repr(self._name) if self._name is not None else "tensor stream"
        return CheckpointDamaged(
            f"{where}, offset {self._offset}: {text}. The file is damaged or is no tensor file; "
            f"take an older copy")

    def at_end(self) -> bool:
        """Whether nothing follows; only for streams that can seek."""
        if self._left is None:
            raise self.damaged("expected a stream that can seek, to read it to its end")
        return self._left == 0

    def take(self, size_bytes: int, what: str) -> bytes:
        """The next bytes, exactly this many."""
        return bytes(self._fill(size_bytes, what))

    def take_number(self, layout: struct.Struct, what: str) -> int:
        """The next number, laid out as a ``struct.Struct`` of one field says."""
        number: int = layout.unpack(self.take(layout.size, what))[0]
        return number

    def take_array(self, shape: tuple[int, ...], dtype: np.dtype, what: str) -> np.ndarray:
        """The next values as a new array."""
        size_bytes = math.prod(shape) * dtype.itemsize
        values: np.ndarray
        if self._left is None:
            values = np.frombuffer(self._fill(size_bytes, what), dtype)
        else:
            self._check_left(size_bytes, what)
            values = np.empty(size_bytes // dtype.itemsize, dtype)
            self._fill_into(values.view(np.uint8).data, what)
        try:
            return values.reshape(shape)
        except ValueError:
            # Axes beside one of size 0 may be larger than any array's.
            raise self.damaged(f"expected a possible shape, got {list(shape)}") from None

    def _fill(self, size_bytes: int, what: str) -> bytearray:
        """The next bytes, grown piece by piece as they really come."""
        self._check_left(size_bytes, what)
        filled = bytearray()
        while len(filled) < size_bytes:
            piece = bytearray(min(_PIECE_BYTES, size_bytes - len(filled)))
            self._fill_into(memoryview(piece), what)
            filled += piece
        return filled

    def _check_left(self, size_bytes: int, what: str) -> None:
        if self._left is not None and size_bytes > self._left:
            raise self.damaged(f"expected {size_bytes} bytes of {what}, got {self._left}")

    def _fill_into(self, target: memoryview, what: str) -> None:
        done = 0
        while done < len(target):
            # None: a non-blocking stream has nothing now; to wait for it would be a busy loop.
            got = self._stream.readinto(target[done:]) or 0
            if got == 0:
                raise self.damaged(f"expected {len(target)} bytes of {what}, got {done}")
            done += got
        self._offset += done
        if self._left is not None:
            self._left -= done
