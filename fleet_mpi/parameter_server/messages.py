"""What the inline part and the body of each kind of message hold, for both sides.

A push has a *prefix*, the learning rates the worker sets and the number of rows per row table, then the image of
its dense gradients, then its rows. Up to ``protocol.PIECE`` bytes all of it is inline: one message. Above, the
image follows in its own pieces and the rows in cuts of ``protocol.LARGEST``.
"""

import json

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.errors import (CheckpointDamaged, Diverged, EnvironmentProblem, FleetError, PeerLost, Stalled,
                              UsageError)
from fleet_mpi.parameter_server.flat import aligned
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind

_BY_CODE = {kind.exit_code: kind for kind in (UsageError, EnvironmentProblem, PeerLost, Stalled, CheckpointDamaged,
                                              Diverged, FleetError)}
_LONGEST_ERROR = 4000


def prefix_bytes(rates, tables):
    """The length of a push's prefix for so many rates and row tables."""
    return aligned(8 * (rates + tables))


def inbox_bytes(rates, tables):
    """How long a message without a body can be."""
    return HEADER_BYTES + prefix_bytes(rates, tables) + protocol.PIECE


def is_inline(image_bytes, row_bytes=0):
    """Whether gradients of so many bytes go in one message."""
    return image_bytes + row_bytes <= protocol.PIECE


def split_prefix(inline, rates, tables):
    """(rates as float64, rows per table as int64) of a push."""
    return inline[:8 * rates].view(np.float64), inline[8 * rates:8 * (rates + tables)].view(np.int64)


def rows_bytes(count, width, dtype):
    """The bytes of so many rows with their ids."""
    return aligned(8 * count) + aligned(count * width * np.dtype(dtype).itemsize)


def message(header, inline=b""):
    """One message as an array: the header, then bytes or a uint8 array."""
    inline = np.frombuffer(inline, np.uint8) if isinstance(inline, (bytes, bytearray)) else inline
    made = arrays.empty(HEADER_BYTES + len(inline), np.uint8)
    header._replace(inline=len(inline)).pack_into(made)
    made[HEADER_BYTES:] = inline
    return made


def encode(value):
    """A value of numbers, texts, lists and dictionaries as bytes."""
    return json.dumps(value, sort_keys=True).encode()


def decode(inline, source):
    """The value back; PeerLost where the bytes are damaged."""
    try:
        return json.loads(bytes(inline))
    except ValueError:
        raise PeerLost(f"{source} sent a description that cannot be read: {bytes(inline[:40])!r}...") from None


def error_message(sender, error):
    """The message that makes the receiver raise this error."""
    text = encode([getattr(error, "exit_code", 1), str(error)[:_LONGEST_ERROR]])
    return message(Header(Kind.ERROR, sender), text)


def raise_error(inline, source):
    """Raise what an ERROR message holds."""
    code, text = decode(inline, source)
    raise _BY_CODE.get(code, FleetError)(f"{source} says: {text}")


def manifest(named):
    """(description, arrays) of {key: array}, where a key is a tuple of texts and numbers."""
    described = [[list(key), array.dtype.str, list(array.shape)] for key, array in named.items()]
    return encode(described), [np.ascontiguousarray(array) for array in named.values()]


def arrays_of(described, body, source):
    """{key: array} from a description and the bytes that came with it; refuses what does not fit."""
    found, start = {}, 0
    for key, dtype, shape in decode(described, source):
        dtype = np.dtype(dtype)
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if dtype.hasobject or nbytes < 0 or start + nbytes > len(body):
            raise PeerLost(f"{source} described {key} as {dtype} {shape}, which is not what it sent")
        found[tuple(key)] = body[start:start + nbytes].view(dtype).reshape(shape)
        start += aligned(nbytes)
    return found


def joined(parts):
    """Arrays one after the other as bytes, each on a cache line."""
    body = arrays.empty(sum(aligned(part.nbytes) for part in parts), np.uint8)
    start = 0
    for part in parts:
        body[start:start + part.nbytes] = part.reshape(-1).view(np.uint8)
        start += aligned(part.nbytes)
    return body
