"""A worker's side of tables that travel by rows: which server has which row, and requests for rows.

Row gradients are merged by id before anything is cut; ids are checked before anything is sent. A pull asks every
server that has some of the rows once, for all tables together, and for each row once, however often it is wanted.
"""

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.arrays import aligned
from fleet_mpi.errors import PeerLost, UsageError
from fleet_mpi.kernels.reference import rows as row_kernels, slots
from fleet_mpi.parameter_server import messages
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.update_rules import MergedRows, RowMerger
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind


class RowOutOfRange(UsageError, IndexError):
    """An id that is no row of its table."""


class Route:
    """Where the rows of one table are, for a job of so many servers."""

    def __init__(self, description, servers):
        self.description, self.servers = description, servers
        placed = sorted((shard.row_begin, server, begin) for server in range(servers)
                        for shard, begin in description.of_server(server) if shard.rows)
        self.row_begins = np.array([row for row, _, _ in placed], np.int64)
        self.server_of = np.array([server for _, server, _ in placed], np.int64)
        self.shifts = np.array([begin - row for row, _, begin in placed], np.int64)
        self.dtype = np.dtype(description.dtype)
        self._merge = RowMerger()

    def check(self, ids):
        """Refuse ids that are no rows of the table."""
        position = row_kernels.first_outside(ids, self.description.height)
        if position != row_kernels.ALL_INSIDE:
            raise RowOutOfRange(f"table {self.description.name!r}: id {ids[position]} at position {position} of "
                                f"{len(ids)} is no row of it: expected 0 <= id < {self.description.height}. Make the "
                                f"table as high as the largest id plus one, or mend the ids.")

    def split(self, ids):
        """(local ids ordered by server, the positions they were at, or None for as they were; how many per server)."""
        if len(self.row_begins) == 1:
            return ids, None, np.bincount(self.server_of, minlength=self.servers) * len(ids)
        local, order, counts = np.empty_like(ids), np.empty_like(ids), np.empty(self.servers, np.int64)
        row_kernels.split_ids(ids, self.row_begins, self.shifts, self.server_of, counts, local, order)
        return local, order, counts

    def cut(self, rows):
        """[(local ids, values) per server] of a worker's Rows, merged by id; None counts as no rows."""
        if rows is None:
            rows = arrays.Rows(np.empty(0, np.int64), np.empty((0, self.description.width), self.dtype), 0)
        ids = arrays.to_host(rows.ids)
        values = arrays.to_host(rows.values).reshape(len(ids), self.description.width)
        if values.dtype != self.dtype:
            raise UsageError(f"table {self.description.name!r} is {self.dtype}, its row gradient {values.dtype}")
        self.check(ids)
        kind = MergedRows if isinstance(rows, MergedRows) else arrays.Rows
        merged = self._merge(kind(ids, values, self.description.height))
        local, order, counts = self.split(merged.ids)
        values = merged.values if order is None else merged.values[order]
        ends = np.cumsum(counts)
        return [(local[end - count:end], values[end - count:end]) for count, end in zip(counts, ends)]


class _Wanted:
    """The rows of one table that a pull asks for, each once, and the way back to the caller's order."""

    def __init__(self, route, ids):
        self.route, self.ids = route, ids
        keys, self.slots = np.empty(len(ids), np.int64), np.empty(len(ids), np.int64)
        index = np.full(slots.index_size(len(ids)), slots.NOT_THERE, np.int64)
        count = slots.find_slots(ids, keys, index, self.slots, True)
        self.local, order, self.counts = route.split(keys[:count])
        if order is not None:
            places = np.empty(count, np.int64)
            places[order] = np.arange(count)
            self.slots = places[self.slots]
        self.ends = np.cumsum(self.counts)
        self.received = None

    def of_server(self, server):
        """The slice of the rows, in the order they are asked for, that one server has."""
        return slice(self.ends[server] - self.counts[server], self.ends[server])

    def take(self, server, rows):
        """Keep the rows that one server sent: as they lie if they are all, else with those of the others."""
        if len(rows) == len(self.local):
            self.received = rows
            return
        if self.received is None:
            self.received = arrays.empty((len(self.local), self.route.description.width), self.route.dtype)
        self.received[self.of_server(server)] = rows

    def scatter(self, outs):
        """Fill the arrays, one behind the other, in the caller's order."""
        start = 0
        for out in outs if len(self.ids) else ():
            rows = out.reshape(-1, self.route.description.width)
            np.take(self.received, self.slots[start:start + len(rows)], axis=0, out=rows, mode="clip")
            start += len(rows)


class RowRequests:
    """Pulls rows for a client, and cuts its row gradients."""

    def __init__(self, client):
        self.client = client
        self.has_any = self.are_known = False   # the latter: rows are waited for, and have come before
        self.routes = [Route(one, len(client.links)) for one in client.description.row_tables]

    def cut(self, rows):
        """[[(local ids, values) per table] per server] of one Rows or None per table; missing ones count as None."""
        by_table = [route.cut(rows[number] if number < len(rows) else None)
                    for number, route in enumerate(self.routes)]
        return [[parts[server] for parts in by_table] for server in range(len(self.client.links))]

    def pull(self, wanted, into=None):
        """{table number: rows in the order of its ids}; ``into`` may give {table number: [arrays to fill]}."""
        lines = {number: _line(ids) for number, ids in wanted.items()}
        for number, ids in lines.items():
            self.routes[number].check(ids)
        asked = {number: _Wanted(self.routes[number], ids) for number, ids in lines.items()}
        self.are_known = self.has_any
        try:
            found = self._exchange(asked, into)
        except BaseException as error:
            self.client.give_up(error)
            raise
        self.has_any, self.are_known = True, False
        self.client.let_go()
        return found

    def _exchange(self, asked, into):
        under_way = [self._ask(link, asked) for link in self.client.links if _has_any(asked, link.index)]
        for link, part, answer in under_way:
            self._take(link, part, answer, asked)
        found = {}
        for number, one in asked.items():
            route = self.routes[number]
            found[number] = into[number] if into is not None else arrays.empty(
                (len(one.ids), route.description.width), route.dtype)
            one.scatter(found[number] if into is not None else [found[number]])
        for _, part, _ in under_way:
            self.client._end(part)
        return found

    def _ask(self, link, asked):
        """Send one request; returns what its answer needs."""
        client, tables = self.client, len(self.routes)
        parts = [asked[number].local[asked[number].of_server(link.index)] if number in asked else _NO_IDS
                 for number in range(tables)]
        counts = np.zeros(messages.prefix_bytes(0, tables) // 8, np.int64)
        counts[:tables] = [len(part) for part in parts]
        ids = messages.joined(parts)
        part = client._expect(link)
        answer = arrays.empty(sum(self._bytes(number, int(count)) for number, count in enumerate(counts[:tables])),
                              np.uint8)
        if not messages.is_inline(0, len(answer)):
            part.body = [(client.transport.post_receive(link.rank, Channel.REPLY_BODY, answer[start:stop]), None, None)
                         for start, stop in protocol.cuts(len(answer), client.largest)]
        is_inline = messages.is_inline(0, len(ids))
        header = Header(Kind.PULL_ROWS, client.index, client.pushes, body=0 if is_inline else len(ids))
        client._send(part, messages.message(header, messages.joined([counts, ids] if is_inline else [counts])))
        if not is_inline:
            client._send_body(part, ids)
        return link, part, answer

    def _take(self, link, part, answer, asked):
        """Wait for one server's rows and hand them to their tables; they lie in the part's buffers."""
        client = self.client
        header = client._header(part)
        if header.kind != Kind.VALUES or header.inline + header.body != len(answer):
            raise PeerLost(f"{client._me()}: {link.name} answered {header.kind.name} with "
                           f"{header.inline + header.body} bytes of rows, expected {len(answer)}")
        if not part.body:
            answer = part.reply[HEADER_BYTES:HEADER_BYTES + header.inline]
        for pending, _, _ in part.body:
            client._wait_within(part, pending)
        start = 0
        for number, route in enumerate(self.routes):
            count = asked[number].counts[link.index] if number in asked else 0
            if count:
                shape = count, route.description.width
                rows = answer[start:start + shape[0] * shape[1] * route.dtype.itemsize].view(route.dtype)
                asked[number].take(link.index, rows.reshape(shape))
                start += self._bytes(number, count)

    def _bytes(self, number, count):
        route = self.routes[number]
        return aligned(count * route.description.width * route.dtype.itemsize)


_NO_IDS = np.empty(0, np.int64)


def _line(ids):
    return np.ascontiguousarray(arrays.to_host(ids), np.int64).reshape(-1)


def _has_any(asked, server):
    return any(one.counts[server] for one in asked.values())
