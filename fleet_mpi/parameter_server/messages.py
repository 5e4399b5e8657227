"""What the inline part and the body of each kind of message hold, for both sides.

A push has a *prefix*, the learning rates the worker sets and the number of rows per row table, then the image of
its dense gradients, then its rows. Up to ``protocol.PIECE`` bytes all of it is inline: one message. Above, the
image follows in its own pieces and the rows in cuts of ``protocol.LARGEST``.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.arrays import aligned
from fleet_mpi.errors import CheckpointDamaged, Diverged, EnvironmentProblem, FleetError, PeerLost, Stalled, UsageError
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind

Bytes: TypeAlias = bytes | bytearray | np.ndarray
Key: TypeAlias = tuple[Any, ...]   # of an array that a server keeps: texts and numbers, as _KEYS has them
Described: TypeAlias = tuple[Key, np.dtype, tuple[int, ...]]   # an array's key, type and shape

_BY_CODE = {kind.exit_code: kind for kind in (UsageError, EnvironmentProblem, PeerLost, Stalled, CheckpointDamaged,
                                              Diverged, FleetError)}
_LONGEST_ERROR = 4000
# The keys of named arrays: their first word, and what follows it.
_KEYS: dict[Any, list[type]] = {"param": [str, int], "state": [str, int, str], "rate": [str], "counter": [str],
                                "rows": [str, str]}
_DTYPES = [np.dtype(name).str for name in ("bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32",
                                           "float64")]
_MOST_AXES = 32


def prefix_bytes(rates: int, tables: int) -> int:
    """The length of a push's prefix for so many rates and row tables."""
    return aligned(8 * (rates + tables))


def inbox_bytes(rates: int, tables: int) -> int:
    """How long a message without a body can be."""
    return HEADER_BYTES + prefix_bytes(rates, tables) + protocol.PIECE


def is_inline(image_bytes: int, row_bytes: int = 0) -> bool:
    """Whether gradients of so many bytes go in one message."""
    return image_bytes + row_bytes <= protocol.PIECE


def split_prefix(inline: np.ndarray, rates: int, tables: int) -> tuple[np.ndarray, np.ndarray]:
    """(rates as float64, rows per table as int64) of a push."""
    return inline[:8 * rates].view(np.float64), inline[8 * rates:8 * (rates + tables)].view(np.int64)


def read_prefix(inline: np.ndarray, rates: int, tables: int, source: str) -> tuple[np.ndarray, np.ndarray]:
    """``split_prefix`` of a push that came over the wire."""
    if len(inline) < prefix_bytes(rates, tables):
        raise PeerLost(f"{source} sent a push of {len(inline)} bytes; one has {prefix_bytes(rates, tables)} before its "
                       f"gradients")
    found = split_prefix(inline, rates, tables)
    if tables and found[1].min() < 0:
        raise PeerLost(f"{source} announced {found[1].min()} rows")
    return found


def check_length(header: Header, prefix: int, size: int, what: str) -> None:
    """Refuse a request that has other bytes than its prefix and ``size``; ``what`` says who did what."""
    expected = (prefix + size, 0) if is_inline(size) else (prefix, size)
    if (header.inline, header.body) != expected:
        raise PeerLost(f"{what} {header.inline} + {header.body} bytes, expected {expected[0]} + {expected[1]}: do both "
                       f"run the same program?")


def rows_bytes(count: int, width: int, dtype: Any) -> int:
    """The bytes of so many rows with their ids."""
    return aligned(8 * count) + aligned(count * width * np.dtype(dtype).itemsize)


def message(header: Header, inline: Bytes = b"") -> np.ndarray:
    """One message as an array: the header, then bytes or a uint8 array."""
    inline = np.frombuffer(inline, np.uint8) if isinstance(inline, (bytes, bytearray)) else inline
    made = arrays.empty(HEADER_BYTES + len(inline), np.uint8)
    header._replace(inline=len(inline)).pack_into(made)
    made[HEADER_BYTES:] = inline
    return made


def room_for(nbytes: int, source: str) -> np.ndarray:
    """An array for a body that was announced."""
    try:
        return arrays.empty(nbytes, np.uint8)
    except (MemoryError, ValueError, OverflowError):
        raise PeerLost(f"{source} announces {nbytes} bytes, more than there is memory for") from None


def encode(value: Any) -> bytes:
    """A value of numbers, texts, lists and dictionaries as bytes."""
    return json.dumps(value, sort_keys=True).encode()


def decode(inline: Bytes, source: str) -> Any:
    """The value back; PeerLost where the bytes are damaged."""
    try:
        return json.loads(bytes(inline))
    except (ValueError, RecursionError):
        raise PeerLost(f"{source} sent a description that cannot be read: {bytes(inline[:40])!r}...") from None


def error_message(sender: int, error: BaseException) -> np.ndarray:
    """The message that makes the receiver raise this error."""
    text = encode([getattr(error, "exit_code", 1), str(error)[:_LONGEST_ERROR]])
    return message(Header(Kind.ERROR, sender), text)


def raise_error(inline: Bytes, source: str) -> NoReturn:
    """Raise what an ERROR message holds."""
    told = decode(inline, source)
    if not isinstance(told, list) or [type(part) for part in told] != [int, str]:
        raise PeerLost(f"{source} ended with an error that cannot be read: {told!r:.80}")
    code, text = told
    error = _BY_CODE.get(code, FleetError)(f"{source} says: {text}")
    error.reported_by_peer = True
    raise error


def manifest(named: Mapping[Key, np.ndarray]) -> tuple[bytes, list[np.ndarray]]:
    """(description, arrays) of {key: array}, where a key is a tuple of texts and numbers."""
    listed = [[list(key), array.dtype.str, list(array.shape)] for key, array in named.items()]
    return encode(listed), [np.ascontiguousarray(array) for array in named.values()]


def described(inline: Bytes, source: str) -> list[Described]:
    """[(key, dtype, shape)] of the arrays that a message describes; refuses a damaged description."""
    return list(_checked(decode(inline, source), source))


def one_of(found: list[Described], source: str) -> Described:
    """(key, dtype, shape) from the description of one array."""
    if len(found) != 1:
        raise PeerLost(f"{source} described {len(found)} arrays where one is expected")
    return found[0]


def new_array(dtype: np.dtype, shape: tuple[int, ...], source: str) -> np.ndarray:
    """An array for values that were described."""
    return room_for(math.prod(shape) * dtype.itemsize, source).view(dtype).reshape(shape)


def encoded_lists(keys: Iterable[Key], longest: int) -> Iterator[bytes]:
    """Yield the encoded lists of keys, in order, each of at most ``longest`` bytes, or of one key."""
    named: list[list[str | int]] = []
    size = 2
    for key in keys:
        length = len(encode(list(key))) + 2   # with a comma and a space
        if named and size + length > longest:
            yield encode(named)
            named, size = [], 2
        named.append(list(key))
        size += length
    if named:
        yield encode(named)


def keys_of(inline: Bytes, source: str) -> list[Key]:
    """The keys of an encoded list; PeerLost if one is none."""
    named = decode(inline, source)
    if not isinstance(named, list):
        raise PeerLost(f"{source} named arrays {named!r:.60}; expected a list of names")
    return [key_of(one, source) for one in named]


def key_of(value: Any, source: str) -> Key:
    """A key as it was before it was encoded; PeerLost if it is none."""
    if not isinstance(value, list) or not value or not all(type(part) in (str, int) for part in value):
        raise PeerLost(f"{source} named an array {value!r:.60}; expected a list of texts and numbers")
    kind, *rest = (type(part) for part in value)
    if _KEYS.get(value[0] if kind is str else None) != rest:
        raise PeerLost(f"{source} named an array {value!r:.60}; expected one of {', '.join(_KEYS)}, and what it needs")
    return tuple(value)


def _checked(described: Any, source: str) -> Iterator[Described]:
    """(key, dtype, shape) of each array of a description that came over the wire."""
    wrong = PeerLost(f"{source} sent a damaged description of arrays: {described!r:.80}")
    if not isinstance(described, list):
        raise wrong
    for one in described:
        if not isinstance(one, list) or len(one) != 3 or one[1] not in _DTYPES or not isinstance(one[2], list):
            raise wrong
        if len(one[2]) > _MOST_AXES or not all(type(size) is int and 0 <= size < 1 << 48 for size in one[2]):
            raise wrong
        yield key_of(one[0], source), np.dtype(one[1]), tuple(one[2])


def joined_bytes(parts: Sequence[np.ndarray]) -> int:
    """How many bytes ``joined`` takes."""
    return sum(aligned(part.nbytes) for part in parts)


def joined(parts: Sequence[np.ndarray], body: np.ndarray | None = None) -> np.ndarray:
    """Arrays one after the other as bytes, each on a cache line; in ``body`` where it is given."""
    if body is None:
        body = arrays.empty(joined_bytes(parts), np.uint8)
    start = 0
    for part in parts:
        body[start:start + part.nbytes] = part.reshape(-1).view(np.uint8)
        start += aligned(part.nbytes)
    return body
