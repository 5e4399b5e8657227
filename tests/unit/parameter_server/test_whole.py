"""Whole variables go to any number of servers and come back to the bit."""

import numpy as np
import pytest

from fleet_mpi.errors import PeerLost, UsageError
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.parameter_server.whole import Whole
from fleet_mpi.placement import Variable
from fleet_mpi.ranks.channels import Channel
from tests.unit.parameter_server.loopback_job import VARIABLES, ApplyAlone, Job

CUTS = [(1, "RoundRobin", True), (3, "HashName", True), (4, "RoundRobin", False), (9, "Balanced", True)]


def drawn(variable, seed):
    return np.random.default_rng(seed).normal(size=variable.shape).astype(variable.dtype)


@pytest.mark.parametrize("servers, method, slice_up", CUTS)
def test_what_is_stored_comes_back_to_the_bit(servers, method, slice_up):
    job = Job(servers, method=method, slice_up=slice_up, min_block_size=1000)
    whole = Whole(job.clients[0])
    for seed, variable in enumerate(VARIABLES):
        whole.store(variable.name, drawn(variable, seed))
        whole.store_state(variable.name, "moment2", drawn(variable, 10 + seed))
    for seed, variable in enumerate(VARIABLES):
        found = whole.fetch(variable.name)
        assert found.dtype == variable.dtype and np.array_equal(found, drawn(variable, seed))
        assert np.array_equal(whole.fetch_state(variable.name, "moment2"), drawn(variable, 10 + seed))
        assert not whole.fetch_state(variable.name, "moment1").any()


@pytest.mark.parametrize("servers", (1, 3))
def test_what_is_stored_is_what_training_goes_on_from(servers):
    one, other = Job(servers), Job(servers)
    one.fill()
    one.train(2)
    source, target = Whole(one.clients[0]), Whole(other.clients[0])
    for variable in VARIABLES:
        target.store(variable.name, source.fetch(variable.name))
        for state in ("moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc"):
            target.store_state(variable.name, state, source.fetch_state(variable.name, state))
    for job in (one, other):
        job.train(2, seed=5)
    for variable in VARIABLES:
        assert np.array_equal(one.params()[variable.name], other.params()[variable.name])


def test_a_number_of_a_variable_is_one_number():
    whole = Whole(Job(3, min_block_size=100).clients[0])
    assert whole.fetch_state("a", "beta1_pow_acc").shape == (1,)
    whole.store_state("a", "beta1_pow_acc", np.array([0.25], np.float32))
    for shard in whole.contents.shards("a"):
        assert whole.fetch_state("a", "beta1_pow_acc") == np.float32(0.25), shard
    assert whole.fetch_state("d", "beta1_pow_acc").dtype == np.float64


def test_rates_and_counters_are_the_same_on_all_servers():
    job = Job(3)
    counters = [{"count": np.zeros(1, np.int64)} for _ in job.servers]
    for server, own in zip(job.servers, counters):
        server.snapshots.counters = lambda own=own: own
    whole = Whole(job.clients[0])
    whole.store_rate("lr", np.array([0.125], np.float32))
    whole.store_counter("count", np.array([7]))
    assert [server.rates["lr"][0] for server in job.servers] == [0.125] * 3
    assert [own["count"][0] for own in counters] == [7] * 3
    assert (whole.fetch_rate("lr"), whole.fetch_counter("count")) == (np.float32(0.125), 7)


def test_long_arrays_travel_in_cuts():
    variable = Variable("long", (3000,))
    job = Job(2, variables=[variable], min_block_size=100, largest=1024)
    whole, values = Whole(job.clients[0]), drawn(variable, 3)
    whole.store("long", values)
    before = job.network.sent[0, 2, int(Channel.REPLY_BODY)]
    assert np.array_equal(whole.fetch("long"), values)
    assert job.network.sent[0, 2, int(Channel.REPLY_BODY)] - before == 6  # 6000 bytes in cuts of 1024


def test_variables_without_elements_and_servers_without_shards_are_no_special_case():
    variables = [Variable("none", (0, 3)), Variable("scalar", ()), Variable("one", (1,))]
    job = Job(5, variables=variables, recipes=recipe("momentum", "lr"))
    whole = Whole(job.clients[0])
    with whole.frozen():
        for variable in variables:
            values = np.full(variable.shape, 3, np.float32)
            whole.store(variable.name, values)
            assert np.array_equal(whole.fetch(variable.name), values)
            assert whole.fetch_state(variable.name, "velocity").shape == variable.shape


@pytest.mark.parametrize("wrong", (np.zeros((300, 100), np.float32), np.zeros((100, 300))))
def test_an_array_that_does_not_fit_is_refused_before_it_is_sent(wrong):
    job = Job(2)
    with pytest.raises(UsageError, match=r"param a: the servers keep float32 \[100, 300\], got"):
        Whole(job.clients[0]).store("a", wrong)
    assert not job.network.sent


def test_unknown_names_are_refused_with_the_nearest():
    whole = Whole(Job(1).clients[0])
    with pytest.raises(UsageError, match="no variable 'e'"):
        whole.fetch("e")
    with pytest.raises(UsageError, match="updated by adam, which has no state 'moment3'; did you mean 'moment"):
        whole.fetch_state("a", "moment3")
    with pytest.raises(UsageError, match="server 0 keeps no .'counter', 'x'"):
        whole.fetch_counter("x")


def test_a_server_with_another_idea_of_a_variable_is_refused():
    job = Job(1)
    whole = Whole(job.clients[0])
    job.servers[0].snapshots.find = lambda key: np.zeros((300, 100), np.float32)
    with pytest.raises(PeerLost, match=r"server 0 was asked for \['param', 'a', 0\] as float32 \[100, 300\]"):
        whole.fetch("a")
    with pytest.raises(PeerLost, match="do both run the same program"):
        whole.store("a", np.zeros((100, 300), np.float32))


def test_an_error_while_frozen_thaws_the_servers():
    job = Job(2, workers=2, mode=ApplyAlone)
    with pytest.raises(KeyError):
        with Whole(job.clients[0]).frozen():
            raise KeyError
    assert [server.snapshots.limits for server in job.servers] == [None, None]


def test_a_worker_that_has_left_cannot_save():
    job = Job(1)
    job.clients[0].leave()
    with pytest.raises(UsageError, match="before stop_worker"):
        with Whole(job.clients[0]).frozen():
            pass
