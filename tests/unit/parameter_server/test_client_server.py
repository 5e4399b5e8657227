"""Clients and servers together: counts of messages, errors on both sides, and requests and answers of random bytes."""

import threading

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from fleet_mpi.errors import Diverged, FleetError, PeerLost, Stalled, UsageError
from fleet_mpi.parameter_server import messages
from fleet_mpi.parameter_server.description import param, rate
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.parameter_server.state import ServerState
from fleet_mpi.placement import Variable
from fleet_mpi.ranks import liveness, waiting
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import Header, Kind
from tests.unit.parameter_server.loopback_job import ApplyAlone, Job

SMALL = [Variable("x", (4, 5)), Variable("y", (3,))]
SGD = recipe("sgd", "lr")


# ---------------------------------------------------------------------- what travels

@pytest.mark.parametrize("servers", (1, 3))
def test_a_step_is_one_request_and_one_reply_per_server(servers):
    job = Job(servers, 2)
    job.train(5)
    for client in range(2):
        for server in range(servers):
            assert job.network.sent[server, servers + client, int(Channel.REPLY)] == 5
            assert job.network.sent[servers + client, server, int(Channel.REQUEST)] == 5
    assert sum(job.network.sent.values()) == 5 * 2 * 2 * servers


@pytest.mark.parametrize("largest", (None, 1024))
def test_above_a_piece_the_image_follows_in_pieces_however_they_are_cut(monkeypatch, largest):
    whole = Job(2, 2)
    whole.fill()
    whole.train(3)
    monkeypatch.setattr(protocol, "PIECE", 1 << 14)
    monkeypatch.setattr(protocol, "LONG_RUN", 1 << 12)
    cut = Job(2, 2, largest=largest)
    cut.fill()
    cut.train(3)
    assert all(np.array_equal(whole.params(worker)[name], values) for worker in range(2)
               for name, values in cut.params(worker).items())
    pieces = cut.servers[0].image.pieces
    count = sum(-(-(piece.stop - piece.start) // (largest or 1 << 30)) for piece in pieces)
    assert len(pieces) > 3
    assert cut.network.sent[2, 0, int(Channel.REQUEST_BODY)] == cut.network.sent[0, 2,
                                                                                 int(Channel.REPLY_BODY)] == 3 * count


def test_parameters_may_be_pulled_to_another_place():
    job = Job(3)
    values, into = job.fill(), job.clients[0].layout.new_array()
    job.clients[0].collect(job.clients[0].pull(into))
    found = job.clients[0].layout.views(into)
    assert all(np.array_equal(found[name], values[name]) for name in values)
    assert not job.clients[0].params.any()


# ---------------------------------------------------------------------- beginning and ending

def test_the_same_job_is_welcome_and_another_one_is_refused_with_the_difference():
    job = Job(2, fingerprint={"program": "p1", "workers": 3, "mode": "sync"})
    told = job.clients[0].hello({"program": "p1", "workers": 3, "mode": "sync"})
    assert told == [{"loaded from": None, "job": server.job, "workers": sorted(server.active)}
                    for server in job.servers] and told[0] != told[1]
    with pytest.raises(UsageError, match="worker 0 and server 0 do not run the same job: workers is 2 with the "
                                         "worker and 3 with the server; mode is async with the worker and sync with"):
        job.clients[0].hello({"program": "p1", "workers": 2, "mode": "async"})


def test_the_worker_is_told_the_difference_too():
    job = Job(1, fingerprint={"mode": "sync"})
    job.clients[0].transport.on_wait = lambda: quietly(job)
    with pytest.raises(UsageError, match="^server 0 says: worker 0 and server 0 do not run the same job: mode is geo"):
        job.clients[0].hello({"mode": "geo"})


def quietly(job):
    """As a server's process: its error is its own affair."""
    for server in job.servers:
        try:
            server.advance()
        except FleetError:
            pass


def test_a_difference_in_length_is_shown_in_short():
    job = Job(1, fingerprint={"variables": ["w"] * 1000})
    with pytest.raises(UsageError) as refused:
        job.clients[0].hello({"variables": ["v"] * 1000})
    assert len(str(refused.value)) < 400


def test_a_servers_error_reaches_the_worker_that_waits_with_its_kind():
    class Failing(ApplyAlone):
        """Cannot apply anything."""

        def on_push(self, push):
            """Fails."""
            raise Diverged("x is NaN")
    job = Job(1, 1, SMALL, SGD, Failing)
    job.clients[0].transport.on_wait = lambda: quietly(job)
    with pytest.raises(Diverged, match="^server 0 says: x is NaN"):
        job.clients[0].collect(job.clients[0].push_pull())


def test_serving_ends_when_the_last_worker_has_left():
    job = Job(1, 2, SMALL, SGD)
    serving = threading.Thread(target=job.servers[0].serve, daemon=True)
    serving.start()
    for client in job.clients:
        client.transport.on_wait = None
    job.clients[0].leave()
    job.clients[0].leave()   # again changes nothing
    serving.join(0.2)
    assert serving.is_alive() and job.servers[0].active == {1}
    job.clients[1].leave()
    serving.join(10)
    assert not serving.is_alive() and not job.servers[0].active


def test_a_round_goes_on_without_a_worker_that_left():
    job = Job(2, 3, SMALL, SGD)
    tickets = [client.push_pull() for client in job.clients[:2]]
    job.pump(3)
    assert not any(part.is_answered() for ticket in tickets for part in ticket.parts)
    job.clients[2].leave()
    for client, ticket in zip(job.clients, tickets):
        client.collect(ticket)


# ---------------------------------------------------------------------- who does not come

@pytest.fixture
def impatient(monkeypatch):
    """A deadline of a tenth of a second."""
    monkeypatch.setattr(waiting, "deadline_s", lambda: 0.1)


@pytest.mark.parametrize("lost, words", [
    ((1, 2, Channel.REPLY), "worker 0: no answer from server 1"),
    ((2, 1, Channel.REQUEST), "worker 0: no answer from server 1"),
    ((1, 2, Channel.REPLY_BODY), "worker 0: server 1 stopped within an answer"),
    ((2, 0, Channel.REQUEST_BODY), "worker 0: no answer from server 0")])
def test_a_worker_whose_messages_are_lost_names_the_server(impatient, monkeypatch, lost, words):
    monkeypatch.setattr(protocol, "PIECE", 64)
    monkeypatch.setattr(protocol, "LONG_RUN", 64)
    variables = [Variable("x", (4, 50)), Variable("y", (200,))]
    job = Job(2, 1, variables, SGD, ApplyAlone,
              fault=lambda *message: "drop" if message[:3] == lost else None)
    with pytest.raises(Stalled, match=words + r" \(waited 0.2 s; FLAGS_rpc_deadline"):
        job.clients[0].collect(job.clients[0].push_pull())


def test_a_worker_that_waits_for_one_server_tells_the_others_once_after_a_quarter_of_the_limit(clock, monkeypatch):
    monkeypatch.setattr(waiting, "deadline_s", lambda: 2.0)
    told = []

    def fault(start, end, channel, content):
        if (start, channel) == (2, Channel.REQUEST):
            kind = Header.unpack(content, len(content), "").kind
            told.extend([(end, clock.now - 100)] if kind is Kind.WAITING else ())
        return "drop" if (start, channel) == (1, Channel.REPLY) else None
    job = Job(2, 1, [Variable("x", (4, 50)), Variable("y", (200,))], SGD, ApplyAlone, fault=fault)
    limit_s = liveness.worker_limit_s(2.0)
    with pytest.raises(Stalled, match="no answer from server 1"):
        job.clients[0].collect(job.clients[0].push_pull())
    (server, after_s), = told
    assert server == 0 and limit_s / 4 < after_s < limit_s / 4 + 0.1


def test_a_server_names_the_worker_that_the_others_wait_for(impatient):
    job = Job(1, 3, SMALL, SGD)
    tickets = [job.clients[0].push_pull(), job.clients[2].push_pull()]
    with pytest.raises(Stalled, match=r"server 0: the others have waited 0.1 s for worker 1 \("):
        job.servers[0].serve()
    for worker, ticket in zip((0, 2), tickets):
        with pytest.raises(Stalled, match="server 0 says: server 0: the others have waited 0.1 s for worker 1"):
            job.clients[worker].collect(ticket)


def test_a_server_that_nobody_waits_at_waits_for_ever(impatient):
    job = Job(1, 1, SMALL, SGD)
    serving = threading.Thread(target=job.servers[0].serve, daemon=True)
    serving.start()
    serving.join(0.4)
    assert serving.is_alive()
    job.clients[0].leave()
    serving.join(10)
    assert not serving.is_alive()


# ---------------------------------------------------------------------- what makes no sense

requests = st.builds(Header, st.sampled_from(Kind), st.integers(0, 9), st.integers(-2, 2 ** 62),
                     st.integers(-2, 2 ** 62),
                     st.integers(-2, 2 ** 62), st.just(0), st.sampled_from([0, 0, 0, 8, 192, 2 ** 62]),
                     st.integers(0, 2 ** 32 - 1))
inlines = st.one_of(st.binary(max_size=300), st.sampled_from([b"", b"[]", b"{}", b"3", b"null", bytes(8), bytes(64),
                                                              bytes(256), b'["param","x",0]', b'["rate","lr"]']),
                    st.recursive(st.none() | st.integers() | st.text(max_size=4),
                                 lambda inner: st.lists(inner, max_size=3),
                                 max_leaves=8).map(messages.encode))


@settings(max_examples=300)
@given(mode=st.sampled_from([None, ApplyAlone]), header=requests, inline=inlines)
@example(None, Header(Kind.PUSH, 0, 1), bytes(63))
@example(None, Header(Kind.HELLO, 0), b"[1]")
@example(None, Header(Kind.SQUARES, 0), b"")
def test_a_server_refuses_requests_of_random_bytes_and_never_crashes_otherwise(mode, header, inline):
    job = Job(1, 1, SMALL, SGD, **({"mode": mode} if mode else {}))
    job.clients[0].transport.post_send(0, Channel.REQUEST, messages.message(header, inline))
    for _ in range(3):
        try:
            job.servers[0].advance()
        except FleetError as error:
            assert "worker 0" in str(error) or "server 0" in str(error)
            return


@settings(max_examples=100)
@given(content=st.binary(max_size=200))
def test_a_server_refuses_bytes_that_are_no_request(content):
    job = Job(1, 1, SMALL, SGD)
    job.clients[0].transport.post_send(0, Channel.REQUEST, np.frombuffer(content, np.uint8))
    with pytest.raises(PeerLost, match="worker 0 sent a"):
        job.servers[0].advance()


@settings(max_examples=150)
@given(header=requests, inline=inlines, content=st.none() | st.binary(max_size=100))
def test_a_server_refuses_sums_of_random_bytes(header, inline, content):
    job = Job(2, 1, SMALL, SGD)
    sent = messages.message(header, inline) if content is None else np.frombuffer(content, np.uint8)
    job.servers[1].transport.post_send(0, Channel.BETWEEN_SERVERS, sent)
    try:
        job.servers[0].advance()
    except PeerLost as error:
        assert "server 1" in str(error)


ASKED = {"pull": lambda client: client.collect(client.pull()),
         "push": lambda client: client.collect(client.push()),
         "push_pull": lambda client: client.collect(client.push_pull()),
         "hello": lambda client: client.hello({}),
         "fetch": lambda client: ServerState(client).fetch(param("x")),
         "rate": lambda client: ServerState(client).fetch(rate("lr")),
         "store": lambda client: ServerState(client).store(param("x"), np.zeros((4, 5), np.float32)),
         "freeze": lambda client: ServerState(client)._freeze()}


@settings(max_examples=300)
@given(asked=st.sampled_from(sorted(ASKED)), header=requests, inline=inlines,
       content=st.none() | st.binary(max_size=100))
@example("hello", Header(Kind.DONE, 0), b"3", None)
@example("freeze", Header(Kind.VALUES, 0), b"12345678901", None)
def test_a_worker_refuses_answers_of_random_bytes_and_never_waits_for_ever(asked, header, inline, content):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "deadline_s", lambda: 0.0005)
        job = Job(1, 1, SMALL, SGD)
        client = job.clients[0]
        client.transport.on_wait = None
        sent = messages.message(header, inline) if content is None else np.frombuffer(content, np.uint8)
        for _ in range(2):
            job.servers[0].transport.post_send(1, Channel.REPLY, sent)
        try:
            ASKED[asked](client)
        except FleetError as error:
            assert "server 0" in str(error)


def test_what_no_server_has_room_for_is_not_sent():
    client = Job(1).clients[0]
    with pytest.raises(UsageError, match="worker 0: HELLO to server 0 has 1048577 bytes, a message at most 1048576"):
        client.control.ask(client.links[0], Kind.HELLO, bytes((1 << 20) + 1))


def test_an_answer_longer_than_a_worker_has_room_for_is_refused_with_its_sender():
    job = Job(1)
    ticket = job.clients[0].pull()
    job.network.transport(0).post_send(1, Channel.REPLY, np.zeros(3 << 20, np.uint8))
    with pytest.raises(PeerLost, match="rank 0 sent a message longer than the"):
        job.clients[0].collect(ticket)
