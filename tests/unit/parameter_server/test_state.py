"""Whole variables go to any number of servers and come back to the bit."""

import numpy as np
import pytest

from fleet_mpi.errors import PeerLost, UsageError
from fleet_mpi.parameter_server import state as state_module
from fleet_mpi.parameter_server.description import StateKey, param, rate
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.parameter_server.state import ServerState
from fleet_mpi.placement import Variable
from fleet_mpi.ranks.channels import Channel
from tests.unit.parameter_server.loopback_job import VARIABLES, ApplyAlone, Job

CUTS = [(1, "RoundRobin", True), (3, "HashName", True), (4, "RoundRobin", False), (9, "Balanced", True)]


def drawn(variable, seed):
    return np.random.default_rng(seed).normal(size=variable.shape).astype(variable.dtype)


@pytest.mark.parametrize("servers, method, slice_up", CUTS)
def test_what_is_stored_comes_back_to_the_bit(servers, method, slice_up):
    job = Job(servers, method=method, slice_up=slice_up, min_block_size=1000)
    state = ServerState(job.clients[0])
    for seed, variable in enumerate(VARIABLES):
        state.store(param(variable.name), drawn(variable, seed))
        state.store(StateKey("state", variable.name, "moment2"), drawn(variable, 10 + seed))
    for seed, variable in enumerate(VARIABLES):
        found = state.fetch(param(variable.name))
        assert found.dtype == variable.dtype and np.array_equal(found, drawn(variable, seed))
        assert np.array_equal(state.fetch(StateKey("state", variable.name, "moment2")), drawn(variable, 10 + seed))
        assert not state.fetch(StateKey("state", variable.name, "moment1")).any()


@pytest.mark.parametrize("servers", (1, 3))
def test_what_is_stored_is_what_training_goes_on_from(servers):
    one, other = Job(servers), Job(servers)
    one.fill()
    one.train(2)
    source, target = ServerState(one.clients[0]), ServerState(other.clients[0])
    for variable in VARIABLES:
        target.store(param(variable.name), source.fetch(param(variable.name)))
        for name in ("moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc"):
            key = StateKey("state", variable.name, name)
            target.store(key, source.fetch(key))
    for job in (one, other):
        job.train(2, seed=5)
    for variable in VARIABLES:
        assert np.array_equal(one.params()[variable.name], other.params()[variable.name])


def test_a_number_of_a_variable_is_one_number():
    state = ServerState(Job(3, min_block_size=100).clients[0])
    assert state.fetch(StateKey("state", "a", "beta1_pow_acc")).shape == (1,)
    state.store(StateKey("state", "a", "beta1_pow_acc"), np.array([0.25], np.float32))
    for shard in state.inventory.shards("a"):
        assert state.fetch(StateKey("state", "a", "beta1_pow_acc")) == np.float32(0.25), shard
    assert state.fetch(StateKey("state", "d", "beta1_pow_acc")).dtype == np.float64


def test_rates_and_counters_are_the_same_on_all_servers():
    job = Job(3)
    counters = [{"count": np.zeros(1, np.int64)} for _ in job.servers]
    for server, own in zip(job.servers, counters):
        server.snapshots.counters = lambda own=own: own
    state = ServerState(job.clients[0])
    state.store(rate("lr"), np.array([0.125], np.float32))
    state.store(StateKey("counter", "count"), np.array([7]))
    assert [server.rates["lr"][0] for server in job.servers] == [0.125] * 3
    assert [own["count"][0] for own in counters] == [7] * 3
    assert (state.fetch(rate("lr")), state.fetch(StateKey("counter", "count"))) == (np.float32(0.125), 7)


def test_long_arrays_travel_in_cuts():
    variable = Variable("long", (3000,))
    job = Job(2, variables=[variable], min_block_size=100, largest=1024)
    state, values = ServerState(job.clients[0]), drawn(variable, 3)
    state.store(param("long"), values)
    before = job.network.sent[0, 2, int(Channel.REPLY_BODY)]
    assert np.array_equal(state.fetch(param("long")), values)
    assert job.network.sent[0, 2, int(Channel.REPLY_BODY)] - before == 6  # 6000 bytes in cuts of 1024


def test_all_servers_are_asked_before_one_is_waited_for_and_many_variables_are_one_request():
    job = Job(3, min_block_size=1000)
    values = job.fill()
    requests = []

    def wait():
        requests.append([job.network.sent[3, server, int(Channel.REQUEST)] for server in range(3)])
        job.pump()
    job.clients[0].transport.on_wait = wait
    found = ServerState(job.clients[0]).fetch_all([param(name) for name in values])
    assert all(np.array_equal(array, values[name]) for name, array in zip(values, found))
    assert requests[0] == requests[-1] == [1, 1, 1]


def test_bodies_of_all_servers_are_received_at_the_same_time():
    """None of them is waited for before all are expected: the receives are posted when the headers are there."""
    variable = Variable("long", (3000,))
    job, posted, waited_for = Job(3, variables=[variable], min_block_size=100), [], []
    transport = job.clients[0].transport
    post = transport.post_receive

    def post_receive(rank, channel, target):
        pending = post(rank, channel, target)
        if channel == Channel.REPLY_BODY:
            waited_for.append([one for one in posted if one.was_waited_for])
            pending = Watched(pending)
            posted.append(pending)
        return pending
    transport.post_receive = post_receive
    ServerState(job.clients[0]).fetch(param("long"))
    assert len(posted) == 3 and not any(waited_for)


class Watched:
    """A receive that knows whether anybody has asked for it."""

    def __init__(self, pending):
        self.pending, self.was_waited_for = pending, False

    def done(self):
        """Whether it is over."""
        self.was_waited_for = True
        return self.pending.done()


def test_a_batch_is_no_longer_than_its_limits(monkeypatch):
    monkeypatch.setattr(state_module, "BATCH_BYTES", 130000)   # a and c have 120000 and 128000 bytes
    job = Job(2)
    values, state = job.fill(), ServerState(job.clients[0])
    found = state.fetch_all([param(name) for name in values])
    assert all(np.array_equal(array, values[name]) for name, array in zip(values, found))
    assert job.network.sent[2, 0, int(Channel.REQUEST)] == 2   # a with b, c with d


def test_variables_without_elements_and_servers_without_shards_are_no_special_case():
    variables = [Variable("none", (0, 3)), Variable("scalar", ()), Variable("one", (1,))]
    job = Job(5, variables=variables, recipes=recipe("momentum", "lr"))
    state = ServerState(job.clients[0])
    with state.frozen():
        for variable in variables:
            values = np.full(variable.shape, 3, np.float32)
            state.store(param(variable.name), values)
            assert np.array_equal(state.fetch(param(variable.name)), values)
            assert state.fetch(StateKey("state", variable.name, "velocity")).shape == variable.shape


@pytest.mark.parametrize("wrong", (np.zeros((300, 100), np.float32), np.zeros((100, 300))))
def test_an_array_that_does_not_fit_is_refused_before_it_is_sent(wrong):
    job = Job(2)
    with pytest.raises(UsageError, match=r"param a: the servers keep float32 \[100, 300\], got"):
        ServerState(job.clients[0]).store(param("a"), wrong)
    assert not job.network.sent


def test_unknown_names_are_refused_with_the_nearest():
    state = ServerState(Job(1).clients[0])
    with pytest.raises(UsageError, match="no variable 'e'"):
        state.fetch(param("e"))
    with pytest.raises(UsageError, match="updated by adam, which has no state 'moment3'; did you mean 'moment"):
        state.fetch(StateKey("state", "a", "moment3"))
    with pytest.raises(UsageError, match="server 0 keeps no .'counter', 'x'"):
        state.fetch(StateKey("counter", "x"))


def test_a_server_with_another_idea_of_a_variable_is_refused():
    job = Job(1)
    state = ServerState(job.clients[0])
    job.servers[0].snapshots.find = lambda key: np.zeros((300, 100), np.float32)
    with pytest.raises(PeerLost, match=r"server 0 was asked for \['param', 'a', 0\] as float32 \[100, 300\]"):
        state.fetch(param("a"))
    with pytest.raises(PeerLost, match="do both run the same program"):
        state.store(param("a"), np.zeros((100, 300), np.float32))


def test_an_error_while_frozen_thaws_the_servers():
    job = Job(2, workers=2, mode=ApplyAlone)
    with pytest.raises(KeyError):
        with ServerState(job.clients[0]).frozen():
            raise KeyError
    assert [server.snapshots.limits for server in job.servers] == [None, None]


def test_a_worker_that_has_left_cannot_save():
    job = Job(1)
    job.clients[0].leave()
    with pytest.raises(UsageError, match="before stop_worker"):
        with ServerState(job.clients[0]).frozen():
            pass
