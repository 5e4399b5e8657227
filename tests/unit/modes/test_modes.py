"""What all modes have in common: they learn, lose nothing, replay, end, and never wait in silence."""

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from fleet_mpi import modes, settings
from fleet_mpi.errors import Stalled, UsageError
from fleet_mpi.parameter_server.recipes import BoundNorm, Decay
from fleet_mpi.parameter_server.state import ServerState
from fleet_mpi.placement import Variable
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.wire import protocol
from tests.unit.modes.loop import LeastSquares, Loop

APART = dict(independent_recv_thread=True, thread_pool_size=2, max_merge_var_num=3, send_wait_times=0)
EVERY = (("sync", {}), ("async", {}), ("async", APART), ("half_async", {"max_merge_var_num": 2}),
         ("geo", {"k_steps": 3}), ("delay_compensated", {}), ("delay_compensated", {"adaptive": True, "lambda_": 0.1}),
         ("bounded_staleness", {"bound": 1}))
NAMES = [name + "_apart" * (options is APART) + "_adaptive" * ("adaptive" in options) for name, options in EVERY]
every_mode = pytest.mark.parametrize("mode, options", EVERY, ids=NAMES)
scripts = st.lists(st.integers(0, 11), max_size=60)

problem = LeastSquares()


def trained(mode, options, steps=(20, 20, 20), script=(), **others):
    """A job that has trained; sums weigh more than means, and geo moves its own copy."""
    rate = 0.3 if mode in ("sync", "half_async") else 0.1
    loop = Loop(mode, options, workers=len(steps), **{"servers": 2, "block": 4, "rate": rate, **others})
    loop.run(problem.trains(loop, steps, own_rate=0.1 if mode == "geo" else None), script)
    return loop


def test_the_table_of_modes_has_what_the_options_of_a_job_name():
    assert set(modes.MODES) == {"sync", "async", "half_async", "geo", "delay_compensated", "bounded_staleness"}


def test_an_unknown_mode_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="no mode is called 'asynch'; did you mean 'async'"):
        modes.server_half("asynch", {})


def test_an_unknown_option_is_refused_by_both_halves():
    with pytest.raises(UsageError, match="mode 'geo' has no option 'k_step'; did you mean 'k_steps'"):
        modes.server_half("geo", {"k_step": 3})
    with pytest.raises(UsageError, match="mode 'sync' has no option 'k_steps'; it has none"):
        modes.worker_half("sync", None, {"k_steps": 3})


@every_mode
def test_it_comes_close_to_the_truth(mode, options):
    loop = trained(mode, options, steps=(40, 40))
    assert problem.distance(loop.values()) < 0.1 < problem.distance({"w": np.zeros((6, 3)), "b": np.zeros(3)})


@every_mode
@hypothesis_settings(max_examples=4)
@given(script=scripts)
def test_the_same_order_of_arrival_gives_the_same_bits(mode, options, script):
    first, second = (trained(mode, options, steps=(5, 5), script=script) for _ in range(2))
    assert first.digest() == second.digest()


@pytest.mark.parametrize("mode, options", [pair for pair in EVERY if pair[0] != "sync"], ids=NAMES[1:])
def test_another_order_gives_another_run_that_learns_too(mode, options):
    one = trained(mode, options, steps=(40, 40))
    other = trained(mode, options, steps=(40, 40), script=[2] * 40 + [3, 0, 1] * 30)
    assert one.digest() != other.digest()
    assert max(problem.distance(one.values()), problem.distance(other.values())) < 0.2


@every_mode
@hypothesis_settings(max_examples=8)
@given(script=scripts, steps=st.lists(st.integers(0, 6), min_size=1, max_size=3))
def test_workers_may_have_any_amount_of_data_and_no_batch_is_lost_or_counted_twice(mode, options, script, steps):
    loop = trained(mode, options, steps=steps, script=script)
    for server in loop.servers:
        assert not server.active and server.applied == [client.pushes for client in loop.clients]
        if mode != "sync":
            assert server.mode.batches == list(steps)


@every_mode
def test_the_order_among_servers_does_not_matter_to_a_single_worker(mode, options):
    one = trained(mode, options, steps=(12,))
    other = trained(mode, options, steps=(12,), servers=3, script=[0, 3, 1, 3, 2, 3, 3, 0] * 20)
    if options is not APART:  # there parameters are taken when they happen to be there
        assert one.digest() == other.digest()


@pytest.mark.parametrize("rule, steps", [("lamb", ()), ("lars_momentum", ()), ("adam", (Decay(0.01),)),
                                         ("sgd", (BoundNorm(0.5, "all"),)), ("momentum", (BoundNorm(0.3),))])
@pytest.mark.parametrize("mode, options", [("async", {}), ("half_async", {}), ("bounded_staleness", {"bound": 3}),
                                           ("delay_compensated", {"lambda_": 0.0})])
def test_with_one_worker_updates_are_those_of_sync_norms_included(mode, options, rule, steps):
    # Four servers for two variables: some keep nothing, and take part in the norms all the same.
    loops = [Loop(name, told, 4, 1, rule=rule, rate=0.1, steps=steps) for name, told in (("sync", {}), (mode, options))]
    for loop in loops:
        loop.store({"w": np.ones((6, 3)), "b": np.ones(3)})
        loop.run(problem.trains(loop, 6))
    assert loops[0].digest() == loops[1].digest()
    assert problem.distance(loops[0].values()) != problem.distance({"w": np.ones((6, 3)), "b": np.ones(3)})


@pytest.mark.parametrize("mode, options", [pair for pair in EVERY if pair[0] != "geo"])
@hypothesis_settings(max_examples=4)
@given(script=scripts)
def test_norms_work_in_any_order_of_arrival(mode, options, script):
    loop = trained(mode, options, steps=(4, 4), script=script, servers=3, rule="lamb")
    assert all(np.isfinite(array).all() for array in loop.values().values())
    assert all(not server.exchange.parked and not server.exchange.heard for server in loop.servers)


@pytest.mark.parametrize("mode, options", [pair for pair in EVERY if pair[0] not in ("sync", "geo")])
def test_schedules_move_on_by_the_batches_of_each_push(mode, options):
    moved = []
    trained(mode, options, steps=(7, 4), servers=1, before_update=moved.append)
    assert sum(moved) == 11 and min(moved) >= 1


def test_a_synchronous_round_moves_schedules_on_by_one():
    moved = []
    trained("sync", {}, steps=(7, 4), servers=1, before_update=moved.append)
    assert moved == [1] * 7


@every_mode
def test_a_lost_answer_is_a_stall_that_names_the_server(mode, options):
    lost = iter([False] * 4 + [True] * 1000)

    def fault(source, target, channel, array):
        return "drop" if channel == Channel.REPLY and target == 1 and next(lost) else None
    with settings.override(FLAGS_rpc_deadline=60), pytest.raises(Stalled, match="rank 1.*rank 0|rank 0.*rank 1"):
        trained(mode, options, steps=(30,), servers=1, fault=fault)


@every_mode
def test_a_worker_that_leaves_while_the_others_wait_holds_nobody_up(mode, options):
    gone = []
    loop = Loop(mode, options, servers=1, workers=3, rate=0.05)
    train = problem.trains(loop, (8, 8, 0))

    def body(worker):
        if worker == 2:
            while not all(client.pushes for client in loop.clients[:2]):
                loop.pause(worker)
            for _ in range(50):
                loop.pause(worker)
            gone.append(min(client.pushes for client in loop.clients[:2]))
        train(worker)
    loop.run(body)
    waits_for_all = mode in ("sync", "bounded_staleness")
    assert (gone[0] < 3) if waits_for_all else (gone[0] == max(client.pushes for client in loop.clients[:2]))
    assert not loop.servers[0].active


@every_mode
@pytest.mark.parametrize("largest", (None, 256))
def test_long_images_travel_in_pieces_and_give_the_same_bits(mode, options, largest, monkeypatch):
    variables = (Variable("w", (6, 3)), Variable("b", (3,)), Variable("unused", (1000,)), Variable("more", (50, 9)))
    # What several workers lead to, or parameters that are not waited for, depends on when things arrive.
    workers = 2 if mode == "sync" else 1

    def run(**others):
        loop = Loop(mode, options, 2, workers, variables, block=4, **others)
        loop.store({one.name: np.full(one.shape, 0.5, "f4") for one in variables})
        loop.run(problem.trains(loop, 5, own_rate=0.1 if mode == "geo" else None))
        return loop
    whole = run()
    monkeypatch.setattr(protocol, "PIECE", 1024)
    monkeypatch.setattr(protocol, "LONG_RUN", 256)
    cut = run(largest=largest)
    assert len(cut.servers[0].image.pieces) > 2
    assert cut.digest() == whole.digest() or options is APART
    assert cut.network.sent[0, 2, int(Channel.REPLY_BODY)] > whole.network.sent[0, 2, int(Channel.REPLY_BODY)] == 0


@pytest.mark.parametrize("mode, options", [pair for pair in EVERY if pair[0] != "sync"], ids=NAMES[1:])
def test_parameters_that_may_change_are_sent_from_a_copy(mode, options, monkeypatch):
    monkeypatch.setattr(protocol, "PIECE", 16)
    loop, shared = Loop(mode, options, 1, 2), []
    server = loop.servers[0]
    answer_values = server.answer_values

    def watched(inbox, image):
        shared.append(np.shares_memory(image, server.dense.params))
        answer_values(inbox, image)
    monkeypatch.setattr(server, "answer_values", watched)
    loop.run(problem.trains(loop, 4))
    assert shared and not any(shared)


@every_mode
@pytest.mark.parametrize("rule", ("momentum", "lamb"))
@hypothesis_settings(max_examples=4)
@given(script=scripts)
def test_servers_that_stand_still_have_the_same_pushes_and_lose_none(mode, options, rule, script):
    loop, seen = Loop(mode, options, 3, 2, rule=rule, rate=0.01, block=4), []
    train = problem.trains(loop, 6)

    def body(worker):
        if worker == 0:
            with ServerState(loop.clients[0]).frozen():
                for _ in range(20):
                    loop.pause(worker)
                    seen.append((loop.digest(), *(tuple(server.applied) for server in loop.servers)))
        train(worker)
    loop.run(body, script)
    assert len(set(seen)) == 1 and len(set(seen[0][1:])) == 1
    assert all(server.applied == [client.pushes for client in loop.clients] for server in loop.servers)
