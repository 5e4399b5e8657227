"""How one whole value is made up of what servers keep of it: of shards, of rows by id, or of one number that all have.

What servers are asked for is named by ``wanted``; ``ask`` says where an answer goes, or that the server says how it
looks, and ``made`` gives the whole once all have answered. Knows no messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.errors import PeerLost
from fleet_mpi.parameter_server.tables.base import KEYS, VALUES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet_mpi.parameter_server.description import Inventory, StateKey
    from fleet_mpi.parameter_server.messages import Key
    from fleet_mpi.placement.shard import Shard

    # What servers are asked for, by server and key: the array to fill, None where the server says of which kind it is.
    Asked = dict[int, dict[Key, np.ndarray | None]]

# Of variables that are in flight at once: enough for the links, little beside a model.
BATCH_BYTES = 1 << 26


class Place(NamedTuple):
    """A server, and the name of an array on the wire."""

    server: int
    wire_key: Key


class Whole(Protocol):
    """One value on its way from the servers."""

    nbytes: int   # as far as it is known before they answer

    @property
    def wanted(self) -> Sequence[Place]:
        """What servers are asked for."""

    def ask(self, asked: Asked) -> None:
        """Add to what servers are asked for."""

    def made(self, asked: Asked) -> np.ndarray:
        """The value, once the answers are there."""


def whole_of(inventory: Inventory, key: StateKey, servers: int) -> Whole:
    """How the value of a key is made up."""
    if not inventory.is_spread(key):
        return OneNumber(places_of(inventory, key, servers)[:1])
    shape, dtype = inventory.shape_and_dtype(key)
    if inventory.grows(key):
        return RowsById(key.variable, key.state or VALUES, shape, dtype, servers)
    return Shards(places_of(inventory, key, servers), shards_of(inventory, key), shape, dtype)


def places_of(inventory: Inventory, key: StateKey, servers: int) -> list[Place]:
    """Every array of the servers that belongs to a value, but for the rows of a table that grows."""
    if key.kind in ("rate", "counter"):
        return [Place(server, (key.kind, key.variable)) for server in range(servers)]
    if inventory.grows(key):
        return [Place(server, ("rows", key.variable, key.state)) for server in range(servers)]
    state = (key.state,) if key.kind == "state" else ()
    return [Place(shard.server, (key.kind, key.variable, shard.block, *state)) for shard in shards_of(inventory, key)]


def shards_of(inventory: Inventory, key: StateKey) -> list[Shard]:
    """The shards of a value; those without elements have no array."""
    return [shard for shard in inventory.shards(key.variable) if shard.size]


def part(whole: np.ndarray, shard: Shard) -> np.ndarray:
    """The part of a whole array that a shard has."""
    return whole.reshape(-1)[shard.offset:shard.offset + shard.size].reshape(shard.shape)


class OneNumber:
    """The same at every place: the first one is asked."""

    nbytes = 0

    def __init__(self, wanted: Sequence[Place]) -> None:
        self.wanted = wanted

    def ask(self, asked: Asked) -> None:
        """The server says how it looks."""
        for server, wire_key in self.wanted:
            asked.setdefault(server, {})[wire_key] = None

    def made(self, asked: Asked) -> np.ndarray:
        """As the server said it."""
        (server, wire_key), = self.wanted
        return _answered(asked, server, wire_key)


class Shards:
    """Parts that are received where they belong."""

    def __init__(self, wanted: Sequence[Place], shards: Sequence[Shard], shape: tuple[int, ...],
                 dtype: np.dtype) -> None:
        self.wanted, self.shards, self.look = wanted, shards, (shape, dtype)
        self.nbytes = sum(shard.size for shard in shards) * dtype.itemsize

    def ask(self, asked: Asked) -> None:
        """Parts of a new array."""
        self.array = arrays.empty(*self.look)
        for (server, wire_key), shard in zip(self.wanted, self.shards):
            asked.setdefault(server, {})[wire_key] = part(self.array, shard)

    def made(self, asked: Asked) -> np.ndarray:
        """The array."""
        return self.array


class RowsById:
    """A column of a table that grows: each server has some rows, which are asked for with their ids.

    Rows are in order of ids, so that the whole is the same for any number of servers.
    """

    nbytes = BATCH_BYTES   # not known: one at a time

    def __init__(self, variable: str, column: str, shape: tuple[int, ...], dtype: np.dtype, servers: int) -> None:
        self.name, self.row, self.dtype = f"{column} of {variable!r}", shape[1:], dtype
        self.keys = [Place(server, ("rows", variable, KEYS)) for server in range(servers)]
        self.values = [Place(server, ("rows", variable, column)) for server in range(servers)]

    @property
    def wanted(self) -> Sequence[Place]:
        """Ids, and the column."""
        return [*self.keys, *(place for place in self.values if place not in self.keys)]

    def ask(self, asked: Asked) -> None:
        """Servers say how many rows they have."""
        for server, wire_key in self.wanted:
            asked.setdefault(server, {})[wire_key] = None

    def made(self, asked: Asked) -> np.ndarray:
        """All rows, in order of ids."""
        ids, parts = ([_answered(asked, *place) for place in places] for places in (self.keys, self.values))
        for number, (line, rows) in enumerate(zip(ids, parts)):
            if line.dtype != np.int64 or (rows.shape, rows.dtype) != ((len(line), *self.row), self.dtype):
                raise PeerLost(f"server {number} sent {self.name} as {rows.dtype} {list(rows.shape)} for ids as "
                               f"{line.dtype} {list(line.shape)}: do both run the same program?")
        joined = np.concatenate(ids)
        places, ends = np.empty_like(joined), np.cumsum([len(line) for line in ids])
        places[np.argsort(joined, kind="stable")] = np.arange(len(joined))
        whole = arrays.empty((len(joined), *self.row), self.dtype)
        for rows, end in zip(parts, ends):
            whole[places[end - len(rows):end]] = rows
        return whole


def _answered(asked: Asked, server: int, wire_key: Key) -> np.ndarray:
    found = asked[server][wire_key]
    assert found is not None   # every answer was taken
    return found
