"""All tables of a worker that trains by itself share their requests; rows come from its copies."""

import numpy as np

from fleet_mpi.arrays import ANY_HEIGHT, Rows
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.parameter_server.tables.growing.description import GrowingDescription
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import Kind
from tests.unit.modes.loop import Loop


def job(servers=2, **told):
    """One worker with two tables."""
    tables = [GrowingDescription(name, 2, "float32", recipe("sgd", "rate"), ("constant", first), is_copied=True)
              for name, first in (("a", 1.0), ("b", 2.0))]
    loop = Loop("geo", told, servers, 1, row_tables=tables, rate=1.0)
    loop.clients[0].transport.on_wait = loop.pump
    return loop


def rows(*ids):
    """Gradients that move rows by 1."""
    return Rows(np.array(ids, np.int64), np.full((len(ids), 2), -1.0, "float32"), ANY_HEIGHT)


def asked(loop, kinds):
    """Count the requests of these kinds that servers take from now on."""
    found = []
    for server in loop.servers:
        take = server.take
        server.take = lambda inbox, header, take=take: [found.append(header.kind), take(inbox, header)]
    return lambda: sum(kind in kinds for kind in found)


def test_a_pull_of_two_tables_is_one_request_to_a_server_and_none_the_second_time():
    loop = job(servers=1)
    count = asked(loop, [Kind.PULL_ROWS])
    wanted = {0: np.array([7, 3, 7]), 1: np.array([[4], [5]])}
    for _ in range(2):
        found = loop.clients[0].pull_rows(wanted)
        assert found[0].tolist() == [[1.0, 1.0]] * 3 and found[1].tolist() == [[2.0, 2.0]] * 2 and count() == 1


def test_an_exchange_is_one_push_and_one_pull_for_all_tables():
    loop = job(servers=1, k_steps=3)
    loop.clients[0].pull_rows({0: np.arange(9), 1: np.arange(9)})
    count = asked(loop, Kind)
    half = loop.halves[0]
    half.restart()
    loop.clients[0].pull_rows({0: np.arange(9), 1: np.arange(9)})
    for _ in range(3):
        half.after_backward([rows(1, 2, 1), rows(8)])
    assert count() == 3
    out = [np.empty((2, 2), "float32"), np.empty((1, 2), "float32")]
    loop.clients[0].pull_rows({0: np.array([1, 2, 1])}, {0: out})
    assert out[0].tolist() == [[7.0, 7.0], [4.0, 4.0]] and out[1].tolist() == [[7.0, 7.0]] and count() == 3


def test_rows_that_are_pushed_without_a_pull_are_brought_first():
    loop = job(servers=2, k_steps=1)
    loop.halves[0].after_backward([None, rows(10 ** 18, -5)])
    stored = [dict(zip(server.row_tables[1].store.ids().tolist(), server.row_tables[1].store.values()[:, 0].tolist()))
              for server in loop.servers]
    assert stored[0] | stored[1] == {10 ** 18: 3.0, -5: 3.0}
    assert not any(server.row_tables[0].store.count for server in loop.servers)


def test_bytes_of_an_exchange_are_those_of_the_rows_that_were_updated(monkeypatch):
    sent = {}
    loop = job(servers=1, k_steps=1)
    pack = protocol.Header.pack_into
    monkeypatch.setattr(protocol.Header, "pack_into", lambda self, made: [
        sent.setdefault(self.kind, []).append(self.inline + self.body), pack(self, made)][1])
    half = loop.halves[0]
    half.after_backward([rows(*range(1000)), None])
    half.after_backward([rows(1), None])
    many, few = sent[Kind.PUSH_PULL]
    assert abs(many - few - 999 * (8 + 2 * 4)) < 2 * 64   # ids and values, each on a cache line
