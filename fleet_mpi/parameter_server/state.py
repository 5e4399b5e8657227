"""The servers' state as one worker sees it: what they keep (``description.Inventory``), whole, to read and to write.

``ServerState`` fetches from all servers at once, and puts back; a copy of one moment (``copied``) is what a save reads
while training goes on. No push or pull of the same client may be in flight meanwhile. ``snapshots`` is the servers'
side.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.errors import FleetError, PeerLost, UsageError
from fleet_mpi.parameter_server import messages
from fleet_mpi.parameter_server.description import Inventory
from fleet_mpi.parameter_server.snapshots import ALONE, KEEP_COPIES, bytes_of
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fleet_mpi.parameter_server.client import Client
    from fleet_mpi.parameter_server.control_requests import Places
    from fleet_mpi.parameter_server.description import StateKey
    from fleet_mpi.parameter_server.messages import Key
    from fleet_mpi.parameter_server.requests import Link
    from fleet_mpi.placement.shard import Shard

    # What servers are asked for, by server and key: the array to fill, None where the server says of which kind it is.
    Asked = dict[int, dict[Key, np.ndarray | None]]
    Request = tuple[Link, bytes, np.ndarray | None]   # the server, what is told, and the body, if any

# Of variables that are in flight at once: enough for the links, little beside a model.
BATCH_BYTES = 1 << 26
_DESCRIBED_BYTES = 100  # of dtype, shape and brackets in the description of an array


class ServerState:
    """Reads and writes what the servers of a client keep, by StateKey."""

    def __init__(self, client: Client) -> None:
        self.client, self.inventory = client, Inventory(client.description)
        self._is_frozen = self._is_broken = self._has_copies = False

    # ------------------------------------------------------------------ one moment of all servers

    @contextlib.contextmanager
    def frozen(self, alone: bool = False) -> Iterator[None]:
        """Within the block no server applies a push; all have applied the same number of each worker's pushes.

        Other workers may read at the same time; not if this one is ``alone``, as it must be to write.
        """
        if self._is_frozen:
            yield
            return
        self._require_connection()
        try:
            self._is_frozen = True
            self._freeze(ALONE if alone else 0)
            yield
        finally:
            self._is_frozen = False
            self._thaw()

    @contextlib.contextmanager
    def copied(self, keys: Iterable[StateKey]) -> Iterator[None]:
        """Within the block ``fetch`` gives these values as of one moment, from copies: the servers go on training.

        The servers are frozen for as long as the copying takes. The copies are released at the end of the block.
        """
        if self._is_frozen or self._has_copies:
            yield
            return
        self._require_connection()
        try:
            with self.frozen():
                self._ask_all(Kind.COPY, self._naming(keys))
                self._has_copies = True   # the servers keep them after the thaw
            yield
        finally:
            self._has_copies = False
            self._thaw()

    def _require_connection(self) -> None:
        if self.client.has_left:
            raise UsageError("this worker has said goodbye to the servers: save or load before stop_worker")

    def _freeze(self, number: int = 0) -> None:
        begun: list[np.ndarray] = []
        for link in self.client.links:
            with self._breaking():
                _, inline, _ = self.client.control.ask(link, Kind.FREEZE, number=number)
            if len(inline) % 8 or begun and len(inline) != begun[0].nbytes:
                raise PeerLost(f"{self._name(link)} sent {len(inline)} bytes of push counts")
            begun.append(inline.view(np.int64))
        counts = np.max(begun, axis=0).tobytes()
        # All are told before one is waited for: a push with norms is applied by all servers together.
        self._ask_all(Kind.FREEZE, [(link, counts, None) for link in self.client.links])

    def _thaw(self) -> None:
        # After a failed request the job ends; to wait for an answer once more would only delay that.
        if not (self._is_broken or self.client.is_cut_off):
            number = KEEP_COPIES if self._has_copies else 0
            self._ask_all(Kind.THAW, [(link, b"", None) for link in self.client.links], number=number)

    def _naming(self, keys: Iterable[StateKey]) -> list[Request]:
        """Requests that name values, each as many as fit into a message."""
        named: dict[int, list[Key]] = {}
        for place in (place for key in keys for place in self._places_to_read(key)):
            named.setdefault(place.server, []).append(place.wire_key)
        return [(self.client.links[server], inline, None) for server, names in named.items()
                for inline in messages.encoded_lists(names, protocol.PIECE)]

    def _ask_all(self, kind: Kind, requests: Iterable[Request], places: Places | None = None, number: int = 0) -> None:
        """Requests, all in flight together, and their answers."""
        with self._breaking():
            parts = [self.client.control.start(link, kind, inline, body, number) for link, inline, body in requests]
            self.client.control.hear_all(parts, kind, places)

    @contextlib.contextmanager
    def _breaking(self) -> Iterator[None]:
        """An error of a request within the block ends the job."""
        try:
            yield
        except FleetError:
            self._is_broken = True
            raise

    # ------------------------------------------------------------------ reading

    def fetch(self, key: StateKey) -> np.ndarray:
        """The value of a key, whole."""
        return next(self.fetch_all([key]))

    def fetch_all(self, keys: Iterable[StateKey]) -> Iterator[np.ndarray]:
        """Yield the value of each key, whole, in order: a batch is asked for at once, one request to each server."""
        batch: list[StateKey] = []
        sizes = np.zeros(2, np.int64)
        for key in keys:
            more = self._sizes(key)
            if batch and (sizes + more > (BATCH_BYTES, protocol.PIECE)).any():
                yield from self._fetch_batch(batch)
                batch, sizes = [], np.zeros(2, np.int64)
            batch.append(key)
            sizes += more
        yield from self._fetch_batch(batch)

    def _sizes(self, key: StateKey) -> np.ndarray:
        """The bytes of a value, and of the words that describe it in the answers."""
        places = self._places_to_read(key)
        itemsize = self.inventory.shape_and_dtype(key)[1].itemsize if self.inventory.is_spread(key) else 0
        return np.array([sum(place.shard.size * itemsize for place in places if place.shard is not None),
                         sum(len(messages.encode(list(place.wire_key))) + _DESCRIBED_BYTES for place in places)])

    def _fetch_batch(self, keys: list[StateKey]) -> Iterator[np.ndarray]:
        asked: Asked = {}
        wholes = [self._new_whole(key, asked) for key in keys]
        self._ask_all(Kind.FETCH, [(self.client.links[server], messages.encode([list(one) for one in wanted]), None)
                                   for server, wanted in asked.items()],
                      lambda link, inline: self._targets(link, inline, asked[link.index]))
        for key, whole in zip(keys, wholes):
            if whole is None:
                place = self._places_to_read(key)[0]
                whole = asked[place.server][place.wire_key]
            assert whole is not None   # every answer was taken
            yield whole

    def _new_whole(self, key: StateKey, asked: Asked) -> np.ndarray | None:
        """An array for a value that is spread over servers; its parts are added to what each server is asked for."""
        whole = arrays.empty(*self.inventory.shape_and_dtype(key)) if self.inventory.is_spread(key) else None
        for server, wire_key, shard in self._places_to_read(key):
            asked.setdefault(server, {})[wire_key] = None if whole is None else _part(whole, shard)
        return whole

    def _targets(self, link: Link, inline: np.ndarray, wanted: dict[Key, np.ndarray | None]) -> list[np.ndarray]:
        """Where the body of an answer goes, as bytes; PeerLost where the answer is not what was asked for."""
        name, described = self._name(link), messages.described(inline, self._name(link))
        if [key for key, _, _ in described] != list(wanted):
            raise PeerLost(f"{name} was asked for {[list(one) for one in wanted]!r:.200} and sent "
                           f"{[list(key) for key, _, _ in described]!r:.200}")
        for key, dtype, shape in described:
            if (known := wanted[key]) is None:
                wanted[key] = messages.new_array(dtype, shape, name)
            elif (dtype, shape) != (known.dtype, known.shape):
                raise PeerLost(f"{name} was asked for {list(key)} as {known.dtype} {list(known.shape)}, it sent "
                               f"{bytes(inline)!r:.80}")
        return [bytes_of(array) for array in wanted.values() if array is not None]

    # ------------------------------------------------------------------ writing

    def store(self, key: StateKey, array: np.ndarray) -> None:
        """Let the servers have the value of a key, from a whole array; all servers are sent theirs at once."""
        if key.kind in ("param", "state"):
            self._check(key, array)
        is_spread, array = self.inventory.is_spread(key), np.ascontiguousarray(array)
        requests: list[Request] = []
        for server, wire_key, shard in self._places(key):
            described, (part,) = messages.manifest({wire_key: _part(array, shard) if is_spread else array})
            requests.append((self.client.links[server], described, bytes_of(part)))
        self._ask_all(Kind.STORE, requests)

    def _check(self, key: StateKey, array: np.ndarray) -> None:
        shape, dtype = self.inventory.shape_and_dtype(key)
        if (tuple(array.shape), array.dtype) != (shape, dtype):
            raise UsageError(f"{' '.join(key).strip()}: the servers keep {dtype} {list(shape)}, got {array.dtype} "
                             f"{list(array.shape)}")

    # ------------------------------------------------------------------ where things are

    def _places(self, key: StateKey) -> list[_Place]:
        """Every array of the servers that belongs to a value; shards without elements have none."""
        if key.kind in ("rate", "counter"):
            return [_Place(link.index, (key.kind, key.variable), None) for link in self.client.links]
        state = (key.state,) if key.kind == "state" else ()
        return [_Place(shard.server, (key.kind, key.variable, shard.block, *state), shard)
                for shard in self.inventory.shards(key.variable) if shard.size]

    def _places_to_read(self, key: StateKey) -> list[_Place]:
        """All parts of a value, or one place of a number that all places have."""
        places = self._places(key)
        return places if self.inventory.is_spread(key) else places[:1]

    def _name(self, link: Link) -> str:
        return self.client.name_of(link.rank)


class _Place(NamedTuple):
    """A server, the name of an array on the wire, and the shard that it belongs to, if any."""

    server: int
    wire_key: Key
    shard: Shard | None


def _part(whole: np.ndarray, shard: Shard | None) -> np.ndarray:
    """The part of a whole array that a shard has."""
    assert shard is not None   # what is spread has shards
    return whole.reshape(-1)[shard.offset:shard.offset + shard.size].reshape(shard.shape)
