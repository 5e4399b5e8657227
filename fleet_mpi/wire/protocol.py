"""The messages between workers and servers: the one place that defines them.

A message is a header of 64 bytes, what follows it directly (its *inline* part), and, above ``PIECE`` bytes, a
*body* that is sent after it as raw pieces. Nothing is pickled; a header that is damaged, of another version or
of an unknown kind is refused. Order is kept per sender and channel, so that pieces need no header of their own.
"""

from __future__ import annotations

import enum
import struct
import zlib
from typing import Any, NamedTuple, TypeAlias

from fleet_mpi.errors import PeerLost

VERSION = 1
HEADER_BYTES = 64
# Pieces of 256 Ki floats: receiving, updating and replying overlap from here on (measured: 64 Ki floats are
# too small for Open MPI, 1 Mi floats leave the cache).
PIECE = 1 << 20
# Runs of a flat array shorter than this are gathered into one piece; longer ones are sent from where they lie.
LONG_RUN = 1 << 18
# The most bytes one send may have: MPI counts to 2^31.
LARGEST = 1 << 30

# Whatever has the buffer protocol; numpy's hints show that from Python 3.12 on only.
ByteBuffer: TypeAlias = Any

_MAGIC = b"FLMP"
_LAYOUT = struct.Struct("<4sHHIIqqqqq")
_CHECK = struct.Struct("<I4x")


class Kind(enum.IntEnum):
    """What a message asks for or answers."""

    HELLO = 1       # a worker's fingerprint as JSON; answered DONE, or ERROR with the difference
    PUSH = 2        # gradients; answered DONE
    PULL = 3        # answered VALUES with the server's parameters
    PUSH_PULL = 4   # gradients; answered VALUES with the parameters they lead to
    PULL_ROWS = 5   # ids per table; answered VALUES with their rows
    STORE = 6       # a named array to take over; answered DONE
    FETCH = 7       # names of arrays; answered VALUES, from the worker's copies where it has some
    FREEZE = 8      # begin no push from now on; answered VALUES with the pushes begun per worker (int64).
    #                 With such counts: apply the pushes up to these, then answer DONE, still frozen
    THAW = 9        # go on, and forget this worker's copies unless the number says to keep them; answered DONE
    LEAVE = 10      # this worker will send nothing more; no answer
    WAITING = 11    # this worker has waited for long for the server with this number; no answer
    PRESENT = 12    # a server has begun, and will take requests in a while; no answer
    COPY = 13       # names of arrays: while frozen, copy them for this worker's FETCH; answered DONE
    DECLARE = 14    # what servers are to keep, as JSON in the body, its checksum as number; no answer
    SHRINK = 15     # a table and which rows go, as JSON: while frozen alone, drop them; answered VALUES with how
    #                 many went (int64)
    DONE = 20
    VALUES = 21
    ERROR = 22      # a sentence and the exit code; the job ends
    SQUARES = 30    # between servers: the sums of squares of what each has of some gradients


class Header(NamedTuple):
    """The fixed part of a message."""

    kind: Kind
    sender: int        # the index of the worker or server
    step: int = 0      # the sender's step, or the round
    count: int = 0     # type: ignore[assignment]  # a method of tuples; batches merged in a push, names in a list
    number: int = 0    # what the kind says
    inline: int = 0    # bytes that follow in the same message
    body: int = 0      # bytes that follow as pieces
    flags: int = 0

    def pack_into(self, buffer: ByteBuffer) -> None:
        """Write the header to the front of a byte array."""
        write_header(memoryview(buffer), *self)

    @classmethod
    def unpack(cls, buffer: ByteBuffer, received: int, source: str) -> Header:
        """The header at the front of ``received`` bytes from ``source`` (a text for people); PeerLost if damaged."""
        if received < HEADER_BYTES:
            raise PeerLost(f"{source} sent a message of {received} bytes; a header has {HEADER_BYTES}")
        view = memoryview(buffer)
        magic, version, kind, sender, flags, step, count, number, inline, body = _LAYOUT.unpack_from(view)
        if magic != _MAGIC or _CHECK.unpack_from(view, _LAYOUT.size)[0] != zlib.crc32(view[:_LAYOUT.size]):
            raise PeerLost(f"{source} sent a damaged header: {bytes(view[:16]).hex()}...")
        if version != VERSION:
            raise PeerLost(f"{source} speaks version {version} of the protocol, this process {VERSION}: install the "
                           f"same fleet_mpi on every machine")
        if kind not in _KIND_OF:
            raise PeerLost(f"{source} sent a message of unknown kind {kind}")
        if inline != received - HEADER_BYTES or body < 0:
            raise PeerLost(f"{source} announced {inline} bytes and a body of {body}, but sent "
                           f"{received - HEADER_BYTES} after the header")
        return cls(_KIND_OF[kind], sender, step, count, number, inline, body, flags)


def write_header(view: memoryview, kind: Kind, sender: int, step: int = 0, count: int = 0, number: int = 0,
                 inline: int = 0, body: int = 0, flags: int = 0) -> None:
    """Write a header to the front of a memoryview."""
    _LAYOUT.pack_into(view, 0, _MAGIC, VERSION, kind, sender, flags, step, count, number, inline, body)
    _CHECK.pack_into(view, _LAYOUT.size, zlib.crc32(view[:_LAYOUT.size]))


_KIND_OF = {kind.value: kind for kind in Kind}


def cuts(nbytes: int, largest: int | None = None) -> list[tuple[int, int]]:
    """(start, stop) of the pieces of a body that has no natural cuts."""
    largest = largest or LARGEST
    return [(start, min(start + largest, nbytes)) for start in range(0, nbytes, largest)]
