"""Synchronous rounds: the bits of one process, however servers are placed and messages cut and ordered."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from fleet_mpi import settings, update_rules
from fleet_mpi.errors import Stalled
from fleet_mpi.parameter_server.recipes import Bound, BoundNorm, Decay
from fleet_mpi.parameter_server.tables.dense import average
from fleet_mpi.placement import Variable
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import protocol
from tests.unit.modes.loop import Loop

VARIABLES = (Variable("a", (30, 40)), Variable("b", (7,)), Variable("c", (50, 11)), Variable("d", (64,)))
CUTS = ((1, "RoundRobin", True), (2, "RoundRobin", True), (3, "HashName", True), (4, "Balanced", False),
        (6, "RoundRobin", False))
RECIPES = {"sgd": ("sgd", ()), "momentum with decay": ("momentum", (Decay(0.1), Bound(-1.0, 1.0))),
           "adam": ("adam", (Decay(0.01, of_sign=True),)), "adagrad": ("adagrad", ()), "ftrl": ("ftrl", ()),
           "rmsprop": ("rmsprop", ()), "lamb": ("lamb", ()), "lars": ("lars_momentum", (Decay(0.01),)),
           "one norm": ("momentum", (BoundNorm(2.0), Decay(0.1))), "all norms": ("adam", (BoundNorm(3.0, "all"),))}


def start():
    """Initial values by name."""
    return {one.name: np.random.default_rng(number).normal(size=one.shape).astype("f4")
            for number, one in enumerate(VARIABLES)}


def gradient(worker, step):
    """One worker's gradients of a step, by name."""
    rng = np.random.default_rng((worker, step, 9))
    return {one.name: rng.normal(size=one.shape).astype("f4") for one in VARIABLES}


def one_process(steps, rule, recipe_steps, rate=0.1):
    """SHA-256 after training with the mean, in worker order, of those that have a batch: whole arrays, no servers."""
    params, rule = start(), update_rules.RULES[rule]
    states = {name: rule.new_states(param) for name, param in params.items()}
    for step in range(max(steps)):
        brought = [gradient(worker, step) for worker, count in enumerate(steps) if count > step]
        mean = {name: sum([one[name] for one in brought[1:]], brought[0][name]) * np.float32(1 / len(brought))
                for name in params}
        for one in recipe_steps:
            apply_whole(one, mean, params)
        for name, param in params.items():
            rule.run(param, mean[name], np.array([rate], "f4"), *states[name], **rule.complete({}))
    return digest(params)


def apply_whole(step, grads, params):
    """A step on whole gradients, as the ops of one process do it."""
    squares = {name: update_rules.square_sum(grad) for name, grad in grads.items()}
    if isinstance(step, BoundNorm) and step.group:
        total = sum([squares[name] for name in sorted(grads)][1:], squares[min(grads)])
        squares = {name: total for name in grads}
    for name, grad in grads.items():
        if isinstance(step, BoundNorm):
            grad *= (step.norm / np.maximum(np.sqrt(squares[name]), step.norm)).astype("f4")
        elif isinstance(step, Bound):
            np.clip(grad, step.low, step.high, out=grad)
        else:
            grad += np.float32(step.coefficient) * (np.sign(params[name]) if step.of_sign else params[name])


def digest(params):
    """SHA-256 of arrays by name."""
    return hashlib.sha256(b"".join(array.tobytes() for _, array in sorted(params.items()))).hexdigest()


def trained(steps, servers=1, script=(), rule="sgd", recipe_steps=(), **others):
    """A job in which each worker has taken its number of steps."""
    loop = Loop("sync", {}, servers, len(steps), VARIABLES, rule, steps=recipe_steps, **{"block": 64, **others})
    loop.store(start())

    def body(worker):
        for step in range(steps[worker]):
            loop.pause(worker)
            for name, values in gradient(worker, step).items():
                loop.grads(worker)[name][...] = values
            loop.halves[worker].after_backward()
        loop.halves[worker].finish()
        loop.clients[worker].leave()
    loop.run(body, script)
    return loop


@pytest.mark.parametrize("recipe", RECIPES)
def test_any_placement_gives_the_bits_of_one_process(recipe):
    rule, steps = RECIPES[recipe]
    expected = one_process((3, 3, 3), rule, steps)
    for servers, method, slice_up in CUTS:
        loop = trained((3, 3, 3), servers, rule=rule, recipe_steps=steps, method=method, slice_up=slice_up)
        assert loop.digest() == expected, (servers, method, slice_up)
        assert all(digest(loop.params(worker)) == expected for worker in range(3))


@pytest.mark.parametrize("recipe", ("adam", "all norms"))
@pytest.mark.parametrize("largest", (None, 1024))
@pytest.mark.parametrize("servers", (1, 3))
def test_pieces_and_cuts_of_1_KiB_give_the_same_bits(recipe, largest, servers, monkeypatch):
    rule, steps = RECIPES[recipe]
    expected = one_process((3, 3), rule, steps)
    monkeypatch.setattr(protocol, "PIECE", 2048)
    monkeypatch.setattr(protocol, "LONG_RUN", 512)
    loop = trained((3, 3), servers, rule=rule, recipe_steps=steps, largest=largest)
    assert loop.digest() == expected
    assert loop.network.sent[0, servers, int(Channel.REPLY_BODY)] > 0


@hypothesis_settings(max_examples=10)
@given(script=st.lists(st.integers(0, 4), max_size=80), cut=st.booleans())
def test_the_order_of_arrival_does_not_matter(script, cut):
    with pytest.MonkeyPatch.context() as patch:
        if cut:
            patch.setattr(protocol, "PIECE", 2048)
            patch.setattr(protocol, "LONG_RUN", 512)
        loop = trained((3, 3, 3), 2, script, rule="momentum")
    assert loop.digest() == one_process((3, 3, 3), "momentum", ())


@hypothesis_settings(max_examples=15)
@given(steps=st.lists(st.integers(0, 4), min_size=2, max_size=3).filter(any), cut=st.booleans(),
       script=st.lists(st.integers(0, 4), max_size=60))
def test_the_mean_is_over_the_workers_that_still_have_data(steps, cut, script):
    # B12: the original applies a worker's last gradient again, and goes on dividing by all.
    with pytest.MonkeyPatch.context() as patch:
        if cut:
            patch.setattr(protocol, "PIECE", 2048)
            patch.setattr(protocol, "LONG_RUN", 512)
        loop = trained(steps, 2, script, rule="momentum")
    assert loop.digest() == one_process(steps, "momentum", ())
    assert all(server.applied == list(steps) and not server.active for server in loop.servers)


@pytest.mark.parametrize("servers", (1, 3))
def test_a_step_is_one_request_and_one_reply_per_server(servers):
    loop = trained((4, 4), servers)
    for server in range(servers):
        for worker in (servers, servers + 1):
            sent = loop.network.sent
            assert sent[worker, server, int(Channel.REQUEST)] == 4 + 1, "four pushes and a goodbye"
            assert sent[server, worker, int(Channel.REPLY)] == 4
            assert not sent[worker, server, int(Channel.REQUEST_BODY)] + sent[server, worker, int(Channel.REPLY_BODY)]
    assert not any(channel == Channel.BETWEEN_SERVERS for _, _, channel in loop.network.sent)


def test_above_a_piece_the_messages_are_as_many_as_pieces(monkeypatch):
    monkeypatch.setattr(protocol, "PIECE", 2048)
    monkeypatch.setattr(protocol, "LONG_RUN", 512)
    loop = trained((2,), 1)
    pieces = len(loop.servers[0].image.pieces)
    assert pieces > 1
    assert loop.network.sent[1, 0, int(Channel.REQUEST_BODY)] == 2 * pieces
    assert loop.network.sent[0, 1, int(Channel.REPLY_BODY)] == 2 * pieces


@pytest.mark.parametrize("cut", (False, True))
def test_a_worker_that_does_not_come_is_named(cut, monkeypatch):
    if cut:
        monkeypatch.setattr(protocol, "PIECE", 2048)

    def fault(source, target, channel, array):
        return "drop" if source == 2 and channel == Channel.REQUEST else None
    with settings.override(FLAGS_rpc_deadline=50), pytest.raises(Stalled, match="rank 0: the others have waited .* "
                                                                                "for rank 2 "):
        trained((2, 2), 1, fault=fault)


def test_nobody_is_late_while_nobody_waits():
    loop = Loop("sync", {}, 1, 2, VARIABLES)
    mode = loop.servers[0].mode
    assert mode.late(0.0) == []
    loop.clients[1].push_pull()
    loop.pump()
    assert mode.late(0.0) == [0] and mode.late(1000.0) == []
    loop.clients[0].push_pull()
    loop.pump()
    assert mode.late(0.0) == []


def test_a_pull_has_the_parameters_of_the_last_round():
    loop = Loop("sync", {}, 2, 2, VARIABLES, block=64)
    loop.store(start())
    pushed = loop.clients[0].push_pull()
    pulled = loop.clients[1].pull()
    loop.pump()
    loop.clients[1].collect(pulled)
    assert digest(loop.params(1)) == digest(start())
    assert not loop.clients[0].is_answered(pushed)


def test_who_only_pushes_is_told_when_the_round_is_over():
    loop = Loop("sync", {}, 1, 2, VARIABLES)
    tickets = loop.clients[0].push(), loop.clients[1].push_pull()
    loop.pump()
    for client, ticket in zip(loop.clients, tickets):
        client.collect(ticket)
    assert loop.servers[0].applied == [1, 1]


def test_the_mean_is_the_sum_in_order_times_one_over_the_number():
    values = [np.float32([1e8, 0.1]), np.float32([-1e8, 0.2]), np.float32([1.0, 0.3])]
    images = [one.copy().view(np.uint8) for one in values]
    average(images, [(0, 8, np.dtype("f4"))])
    expected = ((values[0] + values[1]) + values[2]) * np.float32(1 / 3)
    assert images[0].view("f4").tolist() == expected.tolist()
