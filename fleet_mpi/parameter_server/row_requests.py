"""Rows in a worker's requests: gradients of rows on their way to the servers, and rows that are asked for by id.

Row gradients are merged by id before anything is cut; ids are checked before anything is sent. A pull asks every
server that has some of the rows once, for all tables together, and for each row once, however often it is wanted.
Which server has a row is the business of its table's ``Route``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.arrays import Rows, aligned
from fleet_mpi.errors import PeerLost, UsageError
from fleet_mpi.kernels.reference import slots
from fleet_mpi.parameter_server import messages
from fleet_mpi.parameter_server.requests import Part
from fleet_mpi.update_rules import MergedRows, RowMerger
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fleet_mpi.parameter_server.client import Client
    from fleet_mpi.parameter_server.requests import Link
    from fleet_mpi.parameter_server.tables.base import DescribedByRows

    Places = Mapping[int, Sequence[np.ndarray]]   # by table: arrays to fill, one behind the other


_NO_IDS = np.empty(0, np.int64)


class RowTraffic:
    """What a worker sends to one table, and gets from it."""

    def __init__(self, description: DescribedByRows, servers: int) -> None:
        self.name, self.width, self.dtype = description.name, description.width, np.dtype(description.dtype)
        self.route, self._merge = description.route(servers), RowMerger()
        # Of ``distinct``, as long as was needed at most.
        self._room = _NO_IDS, _NO_IDS, np.empty(slots.index_size(0), np.int64)

    def cut(self, rows: Rows | None) -> list[tuple[np.ndarray, np.ndarray]]:
        """[(local ids, values) per server] of a worker's Rows, merged by id; None counts as no rows."""
        if rows is None:
            rows = MergedRows(_NO_IDS, np.empty((0, self.width), self.dtype), 0)
        ids = arrays.to_host(rows.ids)
        values = arrays.to_host(rows.values).reshape(len(ids), self.width)
        if values.dtype != self.dtype:
            raise UsageError(f"table {self.name!r} is {self.dtype}, its row gradient {values.dtype}")
        self.route.check(ids)
        if not isinstance(rows, MergedRows):
            merged = self._merge.checked(Rows(ids, values, rows.height))
            ids, values = merged.ids, merged.values
        local, order, counts = self.route.split(ids)
        values = values if order is None else values[order]
        ends = np.cumsum(counts)
        return [(local[end - count:end], values[end - count:end]) for count, end in zip(counts, ends)]

    def distinct(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(each id once, in order of occurrence; where each is among them): overwritten by the next call."""
        count, size = len(ids), slots.index_size(len(ids))
        if len(self._room[0]) < count:
            self._room = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(size, np.int64)
        keys, places, index = (room[:length] for room, length in zip(self._room, (count, count, size)))
        index.fill(slots.NOT_THERE)
        return keys[:slots.find_slots(ids, keys, index, places, True)], places

    def answer_bytes(self, count: int) -> int:
        """Of so many rows in an answer."""
        return aligned(count * self.width * self.dtype.itemsize)


class _Wanted:
    """The rows of one table that a pull asks for, each once, and the way back to the caller's order."""

    def __init__(self, traffic: RowTraffic, ids: np.ndarray) -> None:
        self.traffic, self.ids = traffic, ids
        keys, self.slots = traffic.distinct(ids)
        self.local, order, self.counts = traffic.route.split(keys)
        if order is not None:
            places = np.empty(len(keys), np.int64)
            places[order] = np.arange(len(keys))
            self.slots = places[self.slots]
        self.ends = np.cumsum(self.counts)
        self.received: Any = None   # the rows, once some have come

    def of_server(self, server: int) -> slice:
        """The slice of the rows, in the order they are asked for, that one server has."""
        return slice(self.ends[server] - self.counts[server], self.ends[server])

    def take(self, server: int, rows: np.ndarray) -> None:
        """Keep the rows that one server sent: as they lie if they are all, else with those of the others."""
        if len(rows) == len(self.local):
            self.received = rows
            return
        if self.received is None:
            self.received = arrays.empty((len(self.local), self.traffic.width), self.traffic.dtype)
        self.received[self.of_server(server)] = rows

    def scatter(self, outs: Sequence[np.ndarray]) -> None:
        """Fill the arrays, one behind the other, in the caller's order."""
        start = 0
        for out in outs if len(self.ids) else ():
            rows = out.reshape(-1, self.traffic.width)
            np.take(self.received, self.slots[start:start + len(rows)], axis=0, out=rows, mode="clip")
            start += len(rows)


class RowRequests:
    """Pulls rows for a client, and cuts its row gradients."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.has_any = self.are_known = False   # the latter: rows are waited for, and have come before
        self.tables = [RowTraffic(one, len(client.links)) for one in client.description.row_tables]

    def cut(self, rows: Sequence[Rows | None]) -> list[list[tuple[np.ndarray, np.ndarray]]]:
        """[[(local ids, values) per table] per server] of one Rows or None per table; missing ones count as None."""
        by_table = [table.cut(rows[number] if number < len(rows) else None)
                    for number, table in enumerate(self.tables)]
        return [[parts[server] for parts in by_table] for server in range(len(self.client.links))]

    def pull(self, wanted: Mapping[int, np.ndarray], into: Places | None = None) -> dict[int, Any]:
        """{table number: rows in the order of its ids}; ``into`` may give {table number: [arrays to fill]}."""
        lines = {number: _line(ids) for number, ids in wanted.items()}
        for number, ids in lines.items():
            self.tables[number].route.check(ids)
        asked = {number: _Wanted(self.tables[number], ids) for number, ids in lines.items()}
        self.are_known = self.has_any
        try:
            found = self._exchange(asked, into)
        except BaseException as error:
            self.client.give_up(error)
            raise
        self.has_any, self.are_known = True, False
        self.client.let_go()
        return found

    def _exchange(self, asked: dict[int, _Wanted], into: Places | None) -> dict[int, Any]:
        under_way = [self._ask(link, asked) for link in self.client.links if _has_any(asked, link.index)]
        for part, answer in under_way:
            self._take(part, answer, asked)
        found: dict[int, Any] = {}
        for number, one in asked.items():
            table = self.tables[number]
            found[number] = into[number] if into is not None else arrays.empty((len(one.ids), table.width), table.dtype)
            one.scatter(found[number] if into is not None else [found[number]])
        for part, _ in under_way:
            self.client.end(part)
        return found

    def _ask(self, link: Link, asked: dict[int, _Wanted]) -> tuple[Part, np.ndarray]:
        """Send one request; returns what its answer needs."""
        client, tables = self.client, len(self.tables)
        ids = [asked[number].local[asked[number].of_server(link.index)] if number in asked else _NO_IDS
               for number in range(tables)]
        part, header = Part(link).expect(), Header(Kind.PULL_ROWS, client.index, client.pushes)
        answer = _expected(part, sum(table.answer_bytes(len(one)) for table, one in zip(self.tables, ids)))
        message, prefix, size = part.buffer(link.room), messages.prefix_bytes(0, tables), messages.joined_bytes(ids)
        inline = message[HEADER_BYTES:]
        messages.split_prefix(inline, 0, tables)[1][...] = [len(one) for one in ids]
        if messages.is_inline(size):
            messages.joined(ids, inline[prefix:prefix + size])
            part.send_front(message, header._replace(inline=prefix + size))
        else:
            part.send_front(message, header._replace(inline=prefix, body=size))
            part.send_body(messages.joined(ids, part.row_buffer(size)))
        return part, answer

    def _take(self, part: Part, answer: np.ndarray, asked: dict[int, _Wanted]) -> None:
        """Wait for one server's rows and hand them to their tables; they lie in the part's buffers."""
        server, header = part.link.index, self.client.header_of(part)
        if header.kind != Kind.VALUES or header.inline + header.body != len(answer):
            raise PeerLost(f"{self.client.name}: {part.link.name} answered {header.kind.name} with "
                           f"{header.inline + header.body} bytes of rows, expected {len(answer)}")
        for pending, _, _ in part.body:
            self.client.wait_within(part, pending)
        start = 0
        for number, table in enumerate(self.tables):
            count = asked[number].counts[server] if number in asked else 0
            if count:
                rows = answer[start:start + count * table.width * table.dtype.itemsize].view(table.dtype)
                asked[number].take(server, rows.reshape(count, table.width))
                start += table.answer_bytes(count)


def _expected(part: Part, nbytes: int) -> np.ndarray:
    """Where so many bytes of rows will be: within the answer, or behind it in a body that is waited for from now on."""
    if messages.is_inline(nbytes):
        return part.reply[HEADER_BYTES:HEADER_BYTES + nbytes]
    answer = part.row_buffer(nbytes)
    part.expect_body(answer)
    return answer


def _line(ids: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(arrays.to_host(ids), np.int64).reshape(-1)


def _has_any(asked: dict[int, _Wanted], server: int) -> bool:
    return any(one.counts[server] for one in asked.values())
