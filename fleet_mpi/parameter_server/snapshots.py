"""A server's part in saving and loading: one moment of all servers, copies of it, and arrays by name.

Pushes are applied at every moment, on each server at another one. For a state that all servers had at the same
number of pushes, one worker freezes them: every server says which pushes it has begun and begins no other; told
the largest numbers that any server said, it lets the pushes up to these pass (each goes to all servers, so they
come) and answers once they are applied. A push that comes later is parked before the mode hears of it, until the
servers are thawed. Pulls are answered all the time.

A worker that saves lets every server copy what it asks for, and thaws them once all have copied: it reads the copies
while training goes on, and the servers drop them when it is done. Workers that save at the same moment share the
copies, so that a synchronous job has one at most.

Workers that save share a freeze: one that comes while others are in it gets their moment, and the servers thaw with the
last of them. One that loads is alone; whoever cannot join waits in a queue, first come first served. Every worker asks
the servers in the same order, and goes on to the next when it is in: so two never wait for each other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.arrays import aligned
from fleet_mpi.errors import EnvironmentProblem, PeerLost, UsageError
from fleet_mpi.parameter_server import messages
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleet_mpi.parameter_server.inbox import Inbox
    from fleet_mpi.parameter_server.messages import Described, Key
    from fleet_mpi.parameter_server.server import Server
    from fleet_mpi.parameter_server.tables.base import Columns
    from fleet_mpi.wire.protocol import Header

ALONE = 1         # the number of a FREEZE by a worker that is going to change values
KEEP_COPIES = 1   # the number of a THAW by a worker that reads its copies from now on
LAST_ROWS = 1     # the number of a STORE of rows by id after which no more come: others are forgotten


class Copies(NamedTuple):
    """What was copied at a moment, which the pushes and stores before it name: {key: array}."""

    moment: tuple[tuple[int, ...], int]
    arrays: dict[Key, np.ndarray]


class Snapshots:
    """Handles STORE, FETCH, FREEZE, COPY and THAW for a server, and parks its pushes while it is frozen.

    Keys of arrays are ("param", variable, block), ("state", variable, block, the rule's state), ("rate", name),
    ("counter", name) and, of a table that grows, ("rows", variable, column). ``counters`` is set where there are
    schedules: called, it gives {name: array} of what they keep.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.handlers: dict[Kind, Callable[[Inbox, Header], None]] = {
            Kind.STORE: self._store, Kind.FETCH: self._fetch, Kind.FREEZE: self._freeze, Kind.COPY: self._copy,
            Kind.THAW: self._thaw}
        self.begun = [0] * len(server.inboxes)   # the last push of each worker that the mode has heard of
        self.limits: list[int] | None = None     # while frozen: the last one it may hear of
        # The workers it is frozen for, and whether the only one changes values.
        self.freezers: set[int] = set()
        self.is_alone = False
        # Freezes that wait, pushes that do, and the workers that are answered later.
        self.queue: list[tuple[Inbox, Header]] = []
        self.parked: list[tuple[Inbox, Header]] = []
        self.awaits: list[Inbox] = []
        self.copies: dict[int, Copies] = {}   # by the worker that reads them
        self.stores = 0                       # how many arrays were replaced
        self.counters: Callable[[], Mapping[str, np.ndarray]] = dict

    # ------------------------------------------------------------------ standing still

    def holds(self, inbox: Inbox, header: Header) -> bool:
        """Whether this push must wait until the thaw; the server is given it again then."""
        if self.limits is not None and header.step > self.limits[inbox.index]:
            self.parked.append((inbox, header))
            return True
        self.begun[inbox.index] = header.step
        return False

    def held_up(self) -> set[int]:
        """The workers that wait for those that save or load."""
        return {inbox.index for inbox, _ in (*self.parked, *self.queue)}

    def advance(self) -> bool:
        """Answer the workers that wait for the pushes up to the limits; returns whether that happened."""
        if not self.awaits or any(done < limit for done, limit in zip(
                self.server.applied, self.limits)):  # type: ignore[arg-type]  # somebody awaits: it is frozen
            return False
        answered, self.awaits = self.awaits, []
        for inbox in answered:
            self.server.answer(inbox)
        return True

    def _freeze(self, inbox: Inbox, header: Header) -> None:
        counts = self._counts_in(inbox, header)
        if counts is not None:
            self.limits = counts
            self.awaits.append(inbox)
            self._unpark()
            self.advance()
        elif self.queue or self.freezers and (self.is_alone or header.number == ALONE):
            self.queue.append((inbox, header))
        else:
            self._stand_still(inbox, header)

    def _stand_still(self, inbox: Inbox, header: Header) -> None:
        if self.limits is None:
            self.limits = self._begun_for_good()
        self.freezers.add(inbox.index)
        self.is_alone = header.number == ALONE
        self.server.answer(inbox, Kind.VALUES, np.array(self.limits, np.int64).tobytes())

    def _begun_for_good(self) -> list[int]:
        """Per worker the last push that will be applied whatever comes: where a round waits for all workers, one that
        waits for the rest may still wait for the worker that saves."""
        return list(self.begun if self.server.mode.applies_alone else self.server.applied)

    def _counts_in(self, inbox: Inbox, header: Header) -> list[int] | None:
        inline = inbox.inline(header)
        if not len(inline):
            return None
        is_in = inbox.index in self.freezers
        if len(inline) != 8 * len(self.begun) or not is_in:
            raise PeerLost(f"{self._name(inbox)} sent {len(inline)} bytes of push counts for {len(self.begun)} "
                           f"workers, to a server that is {'' if is_in else 'not '}frozen")
        assert self.limits is not None   # as long as anybody has it frozen
        return [max(count, limit) for count, limit in zip(inline.view(np.int64).tolist(), self.limits)]

    def _thaw(self, inbox: Inbox, header: Header) -> None:
        self.freezers.discard(inbox.index)
        if header.number != KEEP_COPIES:
            self.copies.pop(inbox.index, None)
        self.server.answer(inbox)
        if not self.freezers:
            self.limits, self.is_alone = None, False
            self._unpark()   # before the next freeze: savers that take turns must not keep the others from training
            queue, self.queue = self.queue, []
            for waited in queue:
                self._freeze(*waited)

    def _unpark(self) -> None:
        """Hand parked pushes over in the order they came; those that are still too early are parked again."""
        parked, self.parked = self.parked, []
        for inbox, header in parked:
            self.server.take(inbox, header)

    # ------------------------------------------------------------------ copies of a moment

    def _copy(self, inbox: Inbox, header: Header) -> None:
        """Add to what a worker may read after the thaw; one that others have copied at this moment is shared."""
        if inbox.index not in self.freezers:
            raise PeerLost(f"{self._name(inbox)} asked for copies, but has not frozen this server")
        moment = tuple(self.server.applied), self.stores
        shared = [one for one in self.copies.values() if one.moment == moment]
        copies = self.copies[inbox.index] = shared[0] if shared else Copies(moment, {})
        for key in messages.keys_of(inbox.inline(header), self._name(inbox)):
            if key not in copies.arrays:
                copies.arrays[key] = self._copied(key)
        self.server.answer(inbox)

    def _copied(self, key: Key) -> np.ndarray:
        array = self.find(key)
        try:
            return array.copy()
        except MemoryError:
            raise EnvironmentProblem(f"{self.server.name_of(self.server.transport.rank)}: a save takes a copy of what "
                                     f"is saved, and there is no memory for {array.nbytes} bytes more (of {key[0]}): "
                                     f"give the job more servers or memory") from None

    # ------------------------------------------------------------------ arrays by name

    def _fetch(self, inbox: Inbox, header: Header) -> None:
        """Answer with arrays: the worker's copies, else from where they lie if nothing changes them meanwhile."""
        keys = messages.keys_of(inbox.inline(header), self._name(inbox))
        described, values = messages.manifest({key: self._readable(inbox, key) for key in keys})
        self.server.answer(inbox, Kind.VALUES, described, [bytes_of(one) for one in values])

    def _readable(self, inbox: Inbox, key: Key) -> np.ndarray:
        if inbox.index in self.freezers:
            return self.find(key)
        copies = self.copies.get(inbox.index)
        if copies is None:
            return self.find(key).copy()
        if key not in copies.arrays:
            raise PeerLost(f"{self._name(inbox)} asked for {list(key)}, which is not among its copies")
        return copies.arrays[key]

    def _store(self, inbox: Inbox, header: Header) -> None:
        """Receive one array, straight to where it belongs, or first beside it where it has several places."""
        described = messages.described(inbox.inline(header), self._name(inbox))
        if described and described[0][0][0] == "rows":
            self._store_rows(inbox, header, described)
            return
        key, dtype, shape = messages.one_of(described, self._name(inbox))
        known = self.find(key)
        if (dtype, shape, header.body) != (known.dtype, known.shape, known.nbytes):
            raise PeerLost(f"{self._name(inbox)} sent {list(key)} as {dtype} {list(shape)} in {header.body} bytes, "
                           f"this server has it as {known.dtype} {list(known.shape)}: do both run the same program?")
        values = known if self._lies_in_place(key) else arrays.empty(known.shape, known.dtype)
        line = bytes_of(values)
        targets = [line[start:stop] for start, stop in protocol.cuts(len(line), self.server.largest)]

        def on_part(part: int) -> None:
            if part == len(targets) - 1:
                self.stores += 1
                self._take_over(key, values)
                self.server.answer(inbox)
        if targets:
            inbox.receive_body(targets, on_part)
        else:
            self.server.answer(inbox)

    def _store_rows(self, inbox: Inbox, header: Header, described: list[Described]) -> None:
        """Receive columns of some rows of a table that grows: each begins on a cache line."""
        table, expected = self._columns_of(described[0][0]), sum(aligned(bytes_for(one)) for one in described)
        if header.body != expected or any(key[:2] != described[0][0][:2] for key, _, _ in described):
            raise PeerLost(f"{self._name(inbox)} sent rows in {header.body} bytes, described {expected} bytes of "
                           f"{[list(key) for key, _, _ in described]!r:.200}")
        body = messages.room_for(header.body, self._name(inbox))

        def take() -> None:
            columns, start = {}, 0
            for one in described:
                key, dtype, shape = one
                columns[key[2]] = body[start:start + bytes_for(one)].view(dtype).reshape(shape)
                start += aligned(bytes_for(one))
            self.stores += 1
            table.take(columns, header.number == LAST_ROWS)
            self.server.answer(inbox)
        if len(body):
            inbox.receive_whole(body, take)
        else:
            take()

    def find(self, key: Key) -> np.ndarray:
        """The array of this key: a view of what the server keeps, or a copy of one number."""
        try:
            if key[0] == "rate":
                return self.server.rates[key[1]]
            if key[0] == "counter":
                return self.counters()[key[1]]
            if key[0] == "rows":
                return self._columns_of(key).get(key[2])
            table = self.server.table_of(key[1])
            return table.param(*key[1:]) if key[0] == "param" else table.state(*key[1:])
        except (KeyError, IndexError, StopIteration):
            raise UsageError(f"{self.server.name_of(self.server.transport.rank)} keeps no {list(key)}") from None

    def _columns_of(self, key: Key) -> Columns:
        columns = self.server.table_of(key[1]).columns
        if columns is None:
            raise UsageError(f"{self.server.name_of(self.server.transport.rank)} keeps {key[1]!r} by blocks, not by id")
        return columns

    def _lies_in_place(self, key: Key) -> bool:
        """A number that goes with a variable is given out as a copy: each segment of the table has its own."""
        return key[0] != "state" or np.may_share_memory(self.find(key), self.find(key))

    def _take_over(self, key: Key, values: np.ndarray) -> None:
        if key[0] == "state":
            _, variable, block, name = key
            self.server.table_of(variable).set_state(variable, block, name, values)

    def _name(self, inbox: Inbox) -> str:
        return self.server.name_of(inbox.rank)


def bytes_for(described: Described) -> int:
    """How many bytes an array has that was described."""
    _, dtype, shape = described
    return math.prod(shape) * dtype.itemsize


def bytes_of(array: np.ndarray) -> np.ndarray:
    """A contiguous array as a line of bytes, without a copy."""
    return array.reshape(-1).view(np.uint8)
