"""Frozen servers have applied the same pushes, whatever was on its way; later nothing is lost."""

import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.errors import EnvironmentProblem, PeerLost, UsageError
from fleet_mpi.parameter_server import messages, norms
from fleet_mpi.parameter_server.description import param
from fleet_mpi.parameter_server.recipes import BoundNorm, recipe
from fleet_mpi.parameter_server.state import ServerState
from fleet_mpi.placement import Variable
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import Header, Kind
from tests.unit.parameter_server.loopback_job import ApplyAlone, Job

ONES = [Variable("x", (40, 5)), Variable("y", (30,)), Variable("z", (3, 5))]
SGD = recipe("sgd", "lr")


def job_of_ones(mode, servers=3, workers=3, fault=None, recipes=SGD):
    """With a rate of 1 and gradients of -1, every element is the number of pushes that it has seen."""
    job = Job(servers, workers, ONES, recipes, mode, min_block_size=20, fault=fault)
    for client in job.clients:
        client.rates[...] = 1.0
        for view in client.layout.views(client.grads).values():
            view[...] = -1.0
    return job


def seen(state):
    """The different numbers of pushes that elements have seen."""
    return {float(value) for variable in ONES for value in np.unique(state.fetch(param(variable.name)))}


class Scripted:
    """While somebody waits, drawn servers advance and drawn workers push."""

    def __init__(self, job, draws):
        self.job, self.draws, self.number = job, draws, 0
        self.tickets, self.pushed = {}, 0
        for client in job.clients:
            client.transport.on_wait = self.step

    def step(self):
        """One drawn move; everybody's turn comes, since the draws are repeated with a shift."""
        draw = self.draws[self.number % len(self.draws)] + self.number // len(self.draws)
        self.number += 1
        job = self.job
        job.servers[draw % len(job.servers)].advance()
        worker = 1 + draw % (len(job.clients) - 1)
        if self.number < 60:
            self.push(worker)

    def push(self, worker):
        """Another push of a worker whose last one is answered."""
        client = self.job.clients[worker]
        ticket = self.tickets.get(worker)
        if ticket is not None and not all(part.is_answered() for part in ticket.parts):
            return
        if ticket is not None:
            client.collect(ticket)
        self.pushed += 1
        self.tickets[worker] = client.push()


@contextmanager
def scripted(piece, draws):
    """(job, script, state) with messages cut at so many bytes, after 15 steps of the script."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "PIECE", piece)
        patch.setattr(protocol, "LONG_RUN", piece // 4)
        job = job_of_ones(ApplyAlone)
        script, state = Scripted(job, draws), ServerState(job.clients[0])
        for _ in range(15):
            script.step()
        yield job, script, state


@pytest.mark.parametrize("piece", (1 << 20, 256))
@settings(max_examples=40)
@given(draws=st.lists(st.integers(0, 30), min_size=1, max_size=40))
def test_what_is_fetched_has_the_same_pushes_everywhere_in_any_order_of_arrival(piece, draws):
    with scripted(piece, draws) as (job, script, state):
        for _ in range(2):
            with state.frozen():
                once = seen(state)
                assert len(once) == 1
                for _ in range(10):
                    script.step()
                assert seen(state) == once
        for worker, ticket in script.tickets.items():
            job.clients[worker].collect(ticket)
        assert seen(state) == {script.pushed}
        assert [sum(server.applied) for server in job.servers] == [script.pushed] * 3


KEYS = [param(variable.name) for variable in ONES]


@pytest.mark.parametrize("piece", (1 << 20, 256))
@settings(max_examples=25)
@given(draws=st.lists(st.integers(0, 30), min_size=1, max_size=40))
def test_copies_are_of_one_moment_while_others_go_on_pushing(piece, draws):
    with scripted(piece, draws) as (job, script, state):
        with state.copied(KEYS):
            once = seen(state)
            assert len(once) == 1
            for _ in range(30):
                script.step()
            assert seen(state) == once
        for worker, ticket in script.tickets.items():
            job.clients[worker].collect(ticket)
        assert seen(state) == {script.pushed} and not any(server.snapshots.copies for server in job.servers)


def test_pushes_are_answered_while_a_saver_reads_its_copies():
    job = job_of_ones(ApplyAlone, servers=2, workers=2)
    state = ServerState(job.clients[0])
    with state.copied(KEYS):
        for _ in range(3):
            job.clients[1].collect(job.clients[1].push_pull())
        assert [server.applied for server in job.servers] == [[0, 3]] * 2 and seen(state) == {0.0}
        assert np.unique(job.params(1)["x"]) == 3.0
    assert seen(state) == {3.0}


def test_savers_of_one_moment_share_the_copies_and_a_later_one_has_its_own():
    job = job_of_ones(ApplyAlone, servers=2, workers=3)
    one, other, last = (ServerState(client) for client in job.clients)
    with one.copied(KEYS), other.copied(KEYS):
        assert all(server.snapshots.copies[0] is server.snapshots.copies[1] for server in job.servers)
        job.clients[2].collect(job.clients[2].push())
        with last.copied(KEYS):
            assert (seen(one), seen(other), seen(last)) == ({0.0}, {0.0}, {1.0})


def test_what_is_stored_after_a_copy_is_in_the_next_one():
    job = job_of_ones(ApplyAlone, servers=2, workers=2)
    one, other = (ServerState(client) for client in job.clients)
    with one.copied(KEYS):
        with other.frozen(alone=True):
            for variable in ONES:
                other.store(param(variable.name), np.full(variable.shape, 7, np.float32))
        with other.copied(KEYS):
            assert (seen(one), seen(other)) == ({0.0}, {7.0})


def test_what_is_not_among_the_copies_is_refused():
    state = ServerState(job_of_ones(ApplyAlone, servers=1, workers=1).clients[0])
    with pytest.raises(PeerLost, match=r"\['param', 'y', 0\], which is not among its copies"), state.copied(KEYS[:1]):
        state.fetch(KEYS[1])


def test_a_push_that_one_server_has_applied_is_awaited_on_the_others():
    held = []
    job = job_of_ones(ApplyAlone, servers=2, workers=2,
                      fault=lambda source, target, channel, array: "hold" if (source, target) == (3, 1) and held
                      else None)
    held.append(True)
    ticket = job.clients[1].push()
    job.pump(5)
    assert [server.applied for server in job.servers] == [[0, 1], [0, 0]]
    state, waits = ServerState(job.clients[0]), []

    def late_arrival():
        waits.append([bool(server.snapshots.awaits) for server in job.servers])
        if waits[-1][1]:
            held.clear()
            job.network.release()
        job.pump()
    job.clients[0].transport.on_wait = late_arrival
    with state.frozen():
        assert [False, True] in waits   # the server that had nothing to wait for has answered before
        assert seen(state) == {1.0}
    job.clients[1].collect(ticket)


def test_norms_between_servers_are_settled_before_servers_stand_still():
    variables = {one.name: recipe("sgd", "lr", [BoundNorm(1.0, "all")]) for one in ONES}
    job = job_of_ones(NormsAlone, servers=3, workers=2, recipes=variables)
    ticket = job.clients[1].push()
    job.servers[0].advance()   # has begun, and asks the others, which have not heard of the push
    with ServerState(job.clients[0]).frozen():
        assert [server.applied for server in job.servers] == [[0, 1]] * 3
    job.clients[1].collect(ticket)


class NormsAlone(ApplyAlone):
    """Applies every push, when it is complete, with norms of whole variables."""

    def on_piece(self, push, number):
        """Too early."""

    def on_push(self, push):
        """Ask the other servers; count and answer at the end."""
        self.server.set_rates(push)
        gradients = self.server.dense.gradients([push.parts[0]])
        self.server.exchange.run((push.worker, push.header.step), norms.update(gradients, self.server.recipes),
                                 lambda: ApplyAlone.on_push(self, push))


@pytest.mark.parametrize("is_early", (True, False))
def test_in_a_synchronous_job_a_push_counts_for_the_round_after_the_thaw(is_early):
    from fleet_mpi.modes.sync import SyncServer
    job = job_of_ones(SyncServer, servers=2, workers=2)
    state = ServerState(job.clients[0])
    early = job.clients[1].push_pull() if is_early else None
    job.pump(3)
    with state.frozen():
        late = early or job.clients[1].push_pull()
        job.pump(3)
        assert seen(state) == {0.0}
    own = job.clients[0].push_pull()
    for client, ticket in zip(job.clients, (own, late)):
        client.collect(ticket)
    assert seen(state) == {1.0}


def test_pulls_are_answered_by_frozen_servers():
    job = job_of_ones(ApplyAlone, servers=2, workers=2)
    job.fill()
    with ServerState(job.clients[0]).frozen():
        job.clients[1].collect(job.clients[1].pull())
    assert np.array_equal(job.params(1)["x"], ServerState(job.clients[0]).fetch(param("x")))


def test_blocks_may_be_nested():
    job = job_of_ones(ApplyAlone, servers=2, workers=1)
    state = ServerState(job.clients[0])
    with state.frozen():
        with state.frozen():
            pass
        assert [server.snapshots.freezers for server in job.servers] == [{0}, {0}]
    assert [server.snapshots.freezers for server in job.servers] == [set(), set()]


class InThread(threading.Thread):
    """Lets a client freeze the servers in its own time, beside the test's own clients."""

    def __init__(self, client, alone, done):
        super().__init__(daemon=True)
        self.state, self.alone, self.done, self.is_in = ServerState(client), alone, done, threading.Event()
        client.transport.on_wait = lambda: time.sleep(0.001)
        self.start()

    def run(self):
        """Be in until ``done``."""
        with self.state.frozen(self.alone):
            self.seen = seen(self.state)
            self.is_in.set()
            assert self.done.wait(10)
            self.seen_last = seen(self.state)

    def comes_in(self, job, within=10):
        """Whether it comes in while the servers do their part."""
        until = time.monotonic() + within
        while time.monotonic() < until and not self.is_in.is_set():
            job.pump(1)
        return self.is_in.is_set()

    def leaves(self, job):
        """Let it thaw the servers."""
        self.done.set()
        while self.is_alive():
            job.pump(1)


def test_workers_that_save_at_once_share_the_moment_and_the_last_one_thaws():
    job = job_of_ones(ApplyAlone, servers=2, workers=3)
    one, other = (InThread(client, False, threading.Event()) for client in job.clients[:2])
    assert one.comes_in(job) and other.comes_in(job)
    ticket = job.clients[2].push()
    job.pump(3)
    one.leaves(job)
    assert [server.snapshots.freezers for server in job.servers] == [{1}, {1}]
    assert not job.clients[2].is_answered(ticket)
    other.leaves(job)
    assert one.seen_last == other.seen_last == {0.0}
    job.clients[2].collect(ticket)
    assert seen(ServerState(job.clients[2])) == {1.0}


@pytest.mark.parametrize("first, second", ((False, True), (True, False), (True, True)))
def test_who_loads_is_alone_and_the_others_take_their_turn_after_the_pushes_that_wait(first, second):
    job = job_of_ones(ApplyAlone, servers=2, workers=3)
    one = InThread(job.clients[0], first, threading.Event())
    assert one.comes_in(job)
    other = InThread(job.clients[1], second, threading.Event())
    ticket = job.clients[2].push()
    until = time.monotonic() + 10
    while [server.snapshots.held_up() for server in job.servers] != [{1, 2}, {2}]:
        job.pump(1)
        assert time.monotonic() < until
    assert not other.comes_in(job, 0.1)
    one.leaves(job)
    assert other.comes_in(job) and other.seen == {1.0}
    other.leaves(job)
    job.clients[2].collect(ticket)


def test_a_saver_does_not_overtake_one_that_waits_to_load():
    job = job_of_ones(ApplyAlone, servers=2, workers=3)
    one = InThread(job.clients[0], False, threading.Event())
    assert one.comes_in(job)
    loads = InThread(job.clients[1], True, threading.Event())
    assert not loads.comes_in(job, 0.1)
    last = InThread(job.clients[2], False, threading.Event())
    assert not last.comes_in(job, 0.1)
    one.leaves(job)
    assert loads.comes_in(job) and not last.comes_in(job, 0.1)
    loads.leaves(job)
    assert last.comes_in(job)
    last.leaves(job)


@pytest.mark.parametrize("kind, inline, body, words", [
    (Kind.FREEZE, b"123", 0, "3 bytes of push counts for 1 workers"),
    (Kind.FREEZE, bytes(8), 0, "not frozen"),
    (Kind.FETCH, b"{", 0, "cannot be read"),
    (Kind.FETCH, messages.encode({"param": "x"}), 0, "named arrays"),
    (Kind.FETCH, messages.encode([["param", "x"]]), 0, "named an array"),
    (Kind.FETCH, messages.encode([["param", "q", 0]]), 0, "keeps no"),
    (Kind.FETCH, messages.encode([["state", "x", 0, "velocity"]]), 0, "keeps no"),
    (Kind.COPY, messages.encode([["param", "x", 0]]), 0, "has not frozen this server"),
    (Kind.STORE, messages.encode([]), 0, "0 arrays where one is expected"),
    (Kind.STORE, messages.encode([[["param", "x", 0], "<f4", [40, 5]]]), 799, "sent .* in 799 bytes"),
    (Kind.STORE, messages.encode([[["param", "x", 0], "<f4", [5, 40]]]), 800, "do both run the same program"),
    (Kind.STORE, messages.encode([[["param", "x", 0], "|O", [40, 5]]]), 800, "damaged description"),
])
def test_requests_that_make_no_sense_are_refused(kind, inline, body, words):
    job = job_of_ones(ApplyAlone, servers=1, workers=1)
    job.clients[0].transport.post_send(0, Channel.REQUEST, messages.message(Header(kind, 0, body=body), inline))
    with pytest.raises((PeerLost, UsageError), match=words):
        job.pump()


def test_a_copy_that_there_is_no_memory_for_is_told_to_the_saver(monkeypatch):
    job = Job(1, 1)

    def no_memory():
        raise MemoryError
    monkeypatch.setattr(job.servers[0].snapshots, "find", lambda key: SimpleNamespace(copy=no_memory, nbytes=1 << 40))
    with pytest.raises(EnvironmentProblem, match="there is no memory for 1099511627776 bytes"):
        with ServerState(job.clients[0]).copied([param("a")]):
            pass
