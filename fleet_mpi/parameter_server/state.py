"""The servers' state as one worker sees it: what they keep (``description.Inventory``), whole, to read and to write.

``ServerState`` fetches from all servers at once, and puts back; a copy of one moment (``copied``) is what a save reads
while training goes on. No push or pull of the same client may be in flight meanwhile. ``snapshots`` is the servers'
side.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.arrays import ANY_HEIGHT
from fleet_mpi.errors import FleetError, PeerLost, UsageError
from fleet_mpi.parameter_server import messages, wholes
from fleet_mpi.parameter_server.description import Inventory
from fleet_mpi.parameter_server.row_loads import RowLoad
from fleet_mpi.parameter_server.snapshots import ALONE, KEEP_COPIES, bytes_of
from fleet_mpi.parameter_server.tables.base import COUNT
from fleet_mpi.parameter_server.wholes import BATCH_BYTES, OneNumber, Place
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from fleet_mpi.parameter_server.client import Client
    from fleet_mpi.parameter_server.control_requests import Places
    from fleet_mpi.parameter_server.description import StateKey
    from fleet_mpi.parameter_server.messages import Key
    from fleet_mpi.parameter_server.requests import Link
    from fleet_mpi.parameter_server.wholes import Asked, Whole

    Request = tuple[Link, bytes, np.ndarray | None]   # the server, what is told, and the body, if any

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
        for place in (place for key in keys for place in self._whole_of(key).wanted):
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
        batch: list[Whole] = []
        sizes = np.zeros(2, np.int64)
        for key in keys:
            whole = self._whole_of(key)
            more = _sizes(whole)
            if batch and (sizes + more > (BATCH_BYTES, protocol.PIECE)).any():
                yield from self._fetch_batch(batch)
                batch, sizes = [], np.zeros(2, np.int64)
            batch.append(whole)
            sizes += more
        yield from self._fetch_batch(batch)

    def count(self, table: str) -> int:
        """How many rows all servers store of a table that grows."""
        found = [OneNumber([Place(link.index, ("rows", table, COUNT))]) for link in self.client.links]
        return int(sum(one.item() for one in self._fetch_batch(found)))

    def _fetch_batch(self, batch: Sequence[Whole]) -> Iterator[np.ndarray]:
        asked: Asked = {}
        for whole in batch:
            whole.ask(asked)
        self._ask_all(Kind.FETCH, [(self.client.links[server], messages.encode([list(one) for one in wanted]), None)
                                   for server, wanted in asked.items()],
                      lambda link, inline: self._targets(link, inline, asked[link.index]))
        for whole in batch:
            yield whole.made(asked)

    def _whole_of(self, key: StateKey) -> Whole:
        return wholes.whole_of(self.inventory, key, len(self.client.links))

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

    def shrink(self, table: str, kind: str, number: int) -> int:
        """Let all servers forget rows of a table that grows, at one moment, by an eviction; returns how many went."""
        told = messages.encode([table, kind, number])
        with self.frozen(alone=True), self._breaking():
            parts = [self.client.control.start(link, Kind.SHRINK, told) for link in self.client.links]
            answers = self.client.control.hear_all(parts, Kind.SHRINK)
        return sum(int(inline.view(np.int64).item()) for _, inline, _ in answers)

    @contextlib.contextmanager
    def storing(self) -> Iterator[Callable[[StateKey, np.ndarray], None]]:
        """Gives what lets the servers have whole values, one call for each, in any order.

        Rows of a table that grows are stored at the end of the block, when all of their columns are there.
        """
        loads: dict[str, RowLoad] = {}

        def store(key: StateKey, array: np.ndarray) -> None:
            if not self.inventory.grows(key):
                self.store(key, array)
                return
            if key.variable not in loads:
                loads[key.variable] = RowLoad(self.client, key.variable)
            self._check(key, array)
            loads[key.variable].add(key.state, array)
        yield store
        for load in loads.values():
            for requests, number in load.rounds():
                self._ask_all(Kind.STORE, requests, number=number)

    def store(self, key: StateKey, array: np.ndarray) -> None:
        """Let the servers have the value of a key, from a whole array; all servers are sent theirs at once."""
        if key.kind in ("param", "state"):
            self._check(key, array)
        array = np.ascontiguousarray(array)
        places = wholes.places_of(self.inventory, key, len(self.client.links))
        parts = [wholes.part(array, shard) for shard in wholes.shards_of(self.inventory, key)] if (
            self.inventory.is_spread(key)) else [array] * len(places)
        requests: list[Request] = []
        for (server, wire_key), part in zip(places, parts):
            described, (line,) = messages.manifest({wire_key: part})
            requests.append((self.client.links[server], described, bytes_of(line)))
        self._ask_all(Kind.STORE, requests)

    def _check(self, key: StateKey, array: np.ndarray) -> None:
        look = self.inventory.shape_and_dtype(key)
        if not fits(array, *look):
            raise UsageError(f"{' '.join(key).strip()}: the servers keep {look[1]} {list(look[0])}, got {array.dtype} "
                             f"{list(array.shape)}")

    def _name(self, link: Link) -> str:
        return self.client.name_of(link.rank)


def fits(array: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> bool:
    """Whether an array looks so; of ANY_HEIGHT is one of any height."""
    known = (len(array), *shape[1:]) if shape[:1] == (ANY_HEIGHT,) and array.ndim else shape
    return (tuple(array.shape), array.dtype) == (known, dtype)


def _sizes(whole: Whole) -> np.ndarray:
    """The bytes of a value, and of the words that describe it in the answers."""
    return np.array([whole.nbytes, sum(len(messages.encode(list(place.wire_key))) + _DESCRIBED_BYTES
                                       for place in whole.wanted)])
