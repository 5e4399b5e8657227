"""Rows that go on request, and budgets that are refused before any table has changed."""

import numpy as np
import pytest

from fleet_mpi.errors import EnvironmentProblem, PeerLost, UsageError
from fleet_mpi.modes.sync import SyncServer
from fleet_mpi.parameter_server import messages, tables
from fleet_mpi.parameter_server.client import Client
from fleet_mpi.parameter_server.description import Description
from fleet_mpi.parameter_server.recipes import BoundNorm, recipe
from fleet_mpi.parameter_server.server import Server
from fleet_mpi.parameter_server.state import ServerState
from fleet_mpi.parameter_server.tables.growing.eviction import LEAST_KEPT
from fleet_mpi.parameter_server.tables.growing.keeping import Keeping
from fleet_mpi.placement import Variable, place
from fleet_mpi.wire.loopback import Network
from fleet_mpi.wire.protocol import Kind
from tests.unit.parameter_server.rows_job import rows_of

SGD, DENSE = recipe("sgd", "lr"), Variable("w", (30, 7))
FULL = 60_000   # bytes: some thousand rows of four
KEEPS = {"counted": Keeping(score="count"), "bounded": Keeping(admit=("seen", 2), budget_bytes=FULL),
         "plain": Keeping()}


class KeepingJob:
    """One worker, some servers, a dense variable, and tables without height by their words."""

    def __init__(self, servers=2, keeps=KEEPS, of_dense=SGD):
        network, ranks = Network(), list(range(servers))
        self.names = list(keeps)
        self.description = Description(place([DENSE], servers), {"w": of_dense}, ("lr",), tuple(
            tables.described("growing", name, 4, "float32", SGD, (), 1, words) for name, words in keeps.items()))
        self.servers = [Server(network.transport(rank), rank, [servers], ranks, self.description, SyncServer())
                        for rank in ranks]
        self.client = Client(network.transport(servers), 0, ranks, self.description)
        self.client.transport.on_wait = lambda: [server.advance() for server in self.servers]
        self.client.rates[...] = 1.0

    def push(self, **given):
        """One step by {table: ids}, all gradients one."""
        self.client.grads.view(np.float32)[...] = 1.0
        self.client.collect(self.client.push_pull(
            [rows_of(given[name], np.ones(len(given[name])), -1) if name in given else None for name in self.names]))

    def table(self, name, server=0):
        """A server's part."""
        return self.servers[server].table_of(name)

    def look(self):
        """All that is kept."""
        stores = [self.table(name, server).store for name in self.names for server in range(len(self.servers))]
        return [*(server.dense.params.tobytes() for server in self.servers),
                *((store.ids().tobytes(), store.values().tobytes()) for store in stores)]


def test_all_servers_drop_rows_at_one_moment_and_say_how_many():
    job = KeepingJob(3)
    for ids in (range(50), range(25, 40)):
        job.push(counted=np.array(ids))
    assert ServerState(job.client).shrink("counted", "fewer_than", 2) == 35
    assert sum(job.table("counted", server).store.count for server in range(3)) == 15
    job.push(counted=np.array([3]))   # thawed again
    assert ServerState(job.client).shrink("counted", "fewer_than", 1) == 15   # counts began anew


def test_who_has_not_frozen_a_server_for_itself_cannot_drop_rows():
    job = KeepingJob(1)
    with pytest.raises(PeerLost, match="has not frozen this server for itself"):
        job.client.control.ask(job.client.links[0], Kind.SHRINK, messages.encode(["counted", "fewer_than", 2]))


@pytest.mark.parametrize("told, kind, sentence", (
    (["counted", "fewer_than"], PeerLost, "expected a table, an eviction, a number"),
    (["counted", "older_than", 3], UsageError, "keeps no score by which rows go that are 'older_than'"),
    (["plain", "fewer_than", 3], UsageError, "table 'plain' keeps no score"),
    (["w", "fewer_than", 3], UsageError, "table 'w' keeps every row")))
def test_requests_that_cannot_be_are_refused(told, kind, sentence):
    job = KeepingJob(1)
    state = ServerState(job.client)
    with pytest.raises(kind, match=sentence), state.frozen(alone=True):
        state._is_broken = True   # what follows the error is the end of the job
        job.client.control.ask(job.client.links[0], Kind.SHRINK, messages.encode(told))


@pytest.mark.parametrize("of_dense", (SGD, recipe("sgd", "lr", (BoundNorm(1.0),))), ids=("plain", "with norms"))
def test_a_step_beyond_a_budget_leaves_every_table_as_it_was(of_dense):
    job = KeepingJob(1, of_dense=of_dense)
    room = job.table("bounded").store.capacity
    for _ in range(2):
        job.push(counted=np.arange(9), bounded=np.arange(room - 5), plain=np.arange(9))
    assert job.table("bounded").store.count == room - 5
    job.push(bounded=np.arange(-6, 0))   # seen once: nothing is stored
    before = job.look()
    with pytest.raises(EnvironmentProblem, match=rf"table 'bounded': server 0 stores {room - 5:,} rows of it and is to "
                                                 rf"take 6 more: there is room for {room:,} \(budget_bytes=60,000\)"):
        job.push(counted=np.arange(20), bounded=np.arange(-6, 0), plain=np.arange(20))
    assert job.look() == before


def test_what_fits_exactly_is_taken():
    job = KeepingJob(1)
    room = job.table("bounded").store.capacity
    job.push(bounded=np.arange(room))
    job.push(bounded=np.arange(room))
    assert job.table("bounded").store.count == room
    job.push(bounded=np.arange(room + 100))   # a hundred wait


def test_a_step_that_is_larger_than_all_memory_is_refused_also_where_rows_are_evicted():
    words = Keeping(score="count", evict=("at_most", LEAST_KEPT), budget_bytes=FULL, when_full="evict")
    job = KeepingJob(1, {"t": words})
    room = job.table("t").store.capacity
    job.push(t=np.arange(room))
    job.push(t=np.arange(5, room + 5))
    assert job.table("t").store.count == room
    with pytest.raises(EnvironmentProblem, match="there is room for"):
        job.push(t=np.arange(room + 1))
