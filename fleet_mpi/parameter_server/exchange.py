"""Between servers: the sums of squares that norms of whole variables need, one small exchange per norm.

Every server sends what it has to every other one and goes on when it has heard of all. Messages of a pair keep
their order, and all servers come to the same exchanges in the same order within a push; those of different pushes
are told apart by (worker, step).
"""

import operator
import time

import numpy as np

from fleet_mpi import arrays, update_rules
from fleet_mpi.errors import PeerLost
from fleet_mpi.parameter_server import messages
from fleet_mpi.wire.protocol import HEADER_BYTES, Channel, Header, Kind

# A message has the nodes of all variables that two servers share: the longest allowed.
ROOM = 1 << 20


class Exchange:
    """One server's part in all exchanges that are under way."""

    def __init__(self, transport, index, servers, name_of):
        self.transport, self.index, self.name_of = transport, index, name_of
        self.others = {number: rank for number, rank in enumerate(servers) if number != index}
        self.inboxes, self.buffers = {}, {}
        self.heard, self.parked, self.sending = {}, {}, []
        self.is_first = True   # whether none has come to its end yet
        for number in self.others:
            self._arm(number)

    def _arm(self, number):
        if number not in self.buffers:
            self.buffers[number] = arrays.empty(HEADER_BYTES + ROOM, np.uint8)
        self.inboxes[number] = self.transport.post_receive(self.others[number], Channel.BETWEEN_SERVERS,
                                                           self.buffers[number])

    def run(self, key, generator, on_end):
        """Drive an update that yields nodes of squares; ``key`` is (worker, step); ``on_end()`` when it is over."""
        self._go_on(key, 0, generator, on_end, None)

    def _go_on(self, key, turn, generator, on_end, sums):
        try:
            nodes = generator.send(sums)
        except StopIteration:
            on_end()
            return
        content = messages.encode([[list(name), [[int(level), int(at), float(value).hex()] for level, at, value in found]]
                                   for name, found in nodes.items()])
        for rank in self.others.values():
            sent = messages.message(Header(Kind.SQUARES, self.index, key[1], count=turn, number=key[0]), content)
            self.sending.append(self.transport.post_send(rank, Channel.BETWEEN_SERVERS, sent))
        self.parked[*key, turn] = (key, turn, generator, on_end, nodes, time.monotonic())
        self._try(key, turn)

    def _try(self, key, turn):
        at = (*key, turn)
        heard = self.heard.get(at, {})
        if at not in self.parked or len(heard) < len(self.others):
            return
        key, turn, generator, on_end, own, _ = self.parked.pop(at)
        self.is_first = False
        everything = {name: list(found) for name, found in own.items()}
        for found in self.heard.pop(at, {}).values():
            for name, nodes in found.items():
                everything.setdefault(name, []).extend(nodes)
        sums = {name: update_rules.join_squares(nodes) for name, nodes in everything.items()}
        self._go_on(key, turn + 1, generator, on_end, sums)

    def advance(self):
        """Take what the other servers sent; returns whether anything came."""
        happened = False
        for number, pending in list(self.inboxes.items()):
            if pending.done():
                happened = True
                self._take(number, pending)
        if self.sending:
            self.sending = [one for one in self.sending if not one.done()]
        return happened

    def late(self, longest):
        """The names of the servers that have been waited for longer than so many seconds."""
        before = time.monotonic() - longest
        late = {number for at, (*_, since) in self.parked.items() if since < before
                for number in self.others.keys() - self.heard.get(at, {}).keys()}
        return [self.name_of(self.others[number]) for number in sorted(late)]

    def close(self):
        """Expect nothing more from the other servers; call when the last worker has left."""
        for pending in self.inboxes.values():
            self.transport.withdraw(pending)
        self.inboxes = {}

    def _take(self, number, pending):
        buffer, source = self.buffers[number], self.name_of(self.others[number])
        header = Header.unpack(buffer, pending.received, source)
        nodes = _nodes_in(messages.decode(buffer[HEADER_BYTES:HEADER_BYTES + header.inline], source), source)
        self._arm(number)
        key, turn = (header.number, header.step), header.count
        self.heard.setdefault((*key, turn), {})[number] = nodes
        self._try(key, turn)


def _nodes_in(value, source):
    """{(variable, what): nodes} as another server sent them; PeerLost where that is damaged."""
    try:
        return {(str(variable), str(what)): [(operator.index(level), operator.index(at), float.fromhex(number))
                                             for level, at, number in found] for (variable, what), found in value}
    except (TypeError, ValueError, OverflowError):
        raise PeerLost(f"{source} sent damaged sums of squares: {value!r:.80}") from None
