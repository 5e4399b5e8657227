"""Who is called late: the one that all waiting ends at, and nobody who compiles his first step."""

import threading
import time

import pytest

from fleet_mpi.errors import PeerLost, Stalled
from fleet_mpi.parameter_server.description import param
from fleet_mpi.parameter_server.recipes import BoundNorm, recipe
from fleet_mpi.parameter_server.requests import Part
from fleet_mpi.parameter_server.snapshots import ALONE
from fleet_mpi.parameter_server.state import ServerState
from fleet_mpi.placement import Variable
from fleet_mpi.ranks import waiting
from fleet_mpi.ranks.policy import Outcome, Policy
from fleet_mpi.wire.protocol import Kind
from tests.unit.parameter_server.loopback_job import Job

SMALL = [Variable("x", (4, 5)), Variable("y", (3,))]
SGD = recipe("sgd", "lr")
CLIPPED = recipe("sgd", "lr", steps=[BoundNorm(1.0, "all")])


@pytest.fixture
def trained(monkeypatch):
    """Make a job that has trained so many steps, however long that took; from then on the deadline is 0.2 s."""
    def make(servers, workers, variables=SMALL, recipes=SGD, steps=0, **options):
        job = Job(servers, workers, variables, recipes, **options)
        job.train(steps)
        monkeypatch.setattr(waiting, "deadline_s", lambda: 0.2)
        return job
    return make


def test_a_worker_held_up_by_a_server_is_not_called_late_by_another_one(trained):
    job = trained(2, 2, steps=1)
    job.clients[0].push_pull()                # worker 0 goes on; worker 1 waits for an answer of server 1
    held_up = job.clients[1]
    held_up._say_that_i_wait(held_up.links[1])
    serve_for(job.servers[0], 0.5)
    assert job.servers[0].stalls.held_up == {1}
    held_up.push_pull()                       # it is free again
    job.pump(3)
    assert not job.servers[0].stalls.held_up


def test_a_worker_that_waits_for_long_tells_the_servers_that_it_asked_nothing_of(trained):
    job = trained(3, 1)
    client = job.clients[0]
    client.transport.on_wait = None
    Part(client.links[2]).expect()
    with pytest.raises(Stalled, match="worker 0: no answer from server 1"):
        client.control.ask(client.links[1], Kind.HELLO, b"{}")
    sent = {to: count for (sender, to, channel), count in job.network.sent.items() if sender == 3}
    assert sent == {1: 1, 0: 1}               # the greeting; and a notice to the one server that owes no answer


def test_a_server_names_the_server_that_it_waits_for(trained):
    job = trained(2, 1, [Variable("x", (4000, 5)), Variable("y", (9000,))], CLIPPED)
    job.clients[0].push_pull()
    with pytest.raises(Stalled, match="server 0: has waited 0.2 s for server 1 "):
        job.servers[0].serve()


def test_a_first_step_is_waited_for_longer_but_not_for_ever(trained):
    job = trained(1, 2)
    server = job.servers[0]
    server.stalls.first_step_s = 0.6
    server.stalls.note(1, Kind.HELLO)
    job.clients[0].push_pull()
    begun = time.monotonic()
    with pytest.raises(Stalled, match="the others have waited 0.6 s for worker 1"):
        server.serve()
    assert time.monotonic() - begun > 0.55


def test_a_policy_may_end_the_job_when_a_worker_leaves(trained):
    job = trained(1, 2, steps=1)
    job.servers[0].policy = Policy(leave=Outcome.END_JOB)
    job.clients[1].leave()
    with pytest.raises(PeerLost, match="worker 1 has left, and the job's policy is to end then"):
        job.servers[0].serve()


@pytest.mark.parametrize("greeted, steps", ((False, 0), (True, 1)))
def test_who_never_came_and_who_has_trained_is_not(trained, greeted, steps):
    job = trained(1, 2, steps=steps)
    server = job.servers[0]
    server.stalls.first_step_s = 60
    if greeted:
        server.stalls.note(1, Kind.HELLO)
    job.clients[0].push_pull()
    with pytest.raises(Stalled, match="the others have waited 0.2 s for worker 1"):
        server.serve()


def test_a_worker_waits_for_its_first_step_longer_than_for_later_ones_and_the_greeting(trained):
    job = trained(1, 1, fingerprint={})
    client = job.clients[0]
    client.first_step_s = 10
    assert client._limit_s() < 0.5
    client.hello({})
    assert client._limit_s() > 10
    job.train(1)
    assert client._limit_s() < 0.5


def test_all_waits_for_a_first_push_share_its_minute(trained, monkeypatch):
    client = trained(1, 1, fingerprint={}).clients[0]
    client.first_step_s, now = 10, [100.0]
    client.hello({})
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    assert client._limit_s() > 10
    now[0] += 20.0                    # its own kernels are compiled
    client.push()
    assert client._limit_s() > 10
    now[0] += 7.0
    assert 3 < client._limit_s() < 6
    now[0] += 7.0
    assert client._limit_s() < 0.5


def test_a_server_that_stood_still_itself_looks_longer_before_it_calls_somebody_late(trained, monkeypatch):
    job = trained(1, 2, steps=1)
    monkeypatch.setattr(waiting, "STOOD_STILL_S", 0.1)
    job.clients[0].push_pull()
    serve_for(job.servers[0], 0.05)
    time.sleep(0.4)                           # stopped; worker 1's push would have been due meanwhile
    begun = time.monotonic()
    with pytest.raises(Stalled):
        job.servers[0].serve()
    assert time.monotonic() - begun > 0.19


def test_of_several_that_found_the_same_the_first_says_so(trained):
    job = trained(2, 2)
    ticket, told = job.clients[0].push_pull(), []
    for server in job.servers:
        with pytest.raises(Stalled) as stalled:
            server.serve()
        told.append(stalled.value.reported_by_peer)
    assert told == [False, True]
    with pytest.raises(Stalled) as stalled:
        job.clients[0].collect(ticket)
    assert stalled.value.reported_by_peer


def test_a_worker_that_hangs_while_it_saves_is_named_to_those_whose_pushes_wait(trained):
    job = trained(1, 2, steps=1)
    server, (saver, other) = job.servers[0], job.clients
    saver.control.ask(saver.links[0], Kind.FREEZE)
    ticket = other.push_pull()
    with pytest.raises(Stalled, match="the others have waited 0.2 s for worker 0, which is saving or loading"):
        server.serve()
    with pytest.raises(Stalled, match="worker 0, which is saving"):
        other.collect(ticket)


def serve_for(server, seconds):
    """Serve, and end no earlier."""
    ending = time.monotonic() + seconds
    serving = threading.Thread(target=server.serve, args=(lambda: time.monotonic() > ending,))
    serving.start()
    serving.join(20)
    assert time.monotonic() >= ending and not serving.is_alive()


@pytest.mark.parametrize("waits", ("to save", "to train"))
def test_who_saves_too_long_is_named_to_those_that_wait(trained, waits):
    job = trained(1, 2, steps=1)
    server, saver, other = job.servers[0], job.clients[0], job.clients[1]
    ServerState(saver)._freeze(ALONE)
    part = other.control.start(other.links[0], Kind.FREEZE) if waits == "to save" else other.push_pull()
    with pytest.raises(Stalled, match="the others have waited 0.2 s for worker 0, which is saving or loading"):
        server.serve()
    with pytest.raises(Stalled, match="worker 0, which is saving or loading"):
        other.control.hear(part, Kind.FREEZE) if waits == "to save" else other.collect(part)


def test_who_reads_its_copies_is_not_called_late_before_it_is_silent_for_long(trained):
    job = trained(1, 2, steps=1)
    server, saver, other = job.servers[0], ServerState(job.clients[0]), job.clients[1]
    name = job.placement.variables[0].name
    with pytest.raises(Stalled, match="the others have waited 0.2 s for worker 0"):
        with saver.copied([param(name)]):
            other.push_pull()
            for _ in range(3):
                serve_for(server, 0.15)
                saver.fetch(param(name))
            server.serve()


def test_who_waits_to_save_is_not_called_late(trained):
    job = trained(1, 3, steps=1)
    job.clients[2].push_pull()
    serve_for(job.servers[0], 0.02)
    ServerState(job.clients[0])._freeze(ALONE)
    job.clients[1].control.start(job.clients[1].links[0], Kind.FREEZE)
    with pytest.raises(Stalled, match="for worker 0") as told:
        job.servers[0].serve()
    assert "worker 1" not in str(told.value)
