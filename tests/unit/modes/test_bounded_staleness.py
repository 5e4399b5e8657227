"""Bounded staleness: nobody is ever too far ahead, in any order of arrival, and the staleness is counted."""

import logging

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from fleet_mpi import notices, settings
from fleet_mpi.errors import Stalled, UsageError
from fleet_mpi.placement import Variable
from tests.unit.modes.loop import LeastSquares, Loop

VARIABLE = (Variable("p", (4,)),)
problem = LeastSquares()


def pushes_alone(bound, wanted=10):
    """How many pushes of one worker are answered while the other one does nothing."""
    loop = Loop("bounded_staleness", {"bound": bound}, 2, 2, VARIABLE)
    answered = 0
    for _ in range(wanted):
        ticket = loop.clients[0].push_pull()
        loop.pump()
        if not loop.clients[0].is_answered(ticket):
            break
        loop.clients[0].collect(ticket)
        answered += 1
    return answered, loop


@pytest.mark.parametrize("bound", (0, 1, 3))
def test_the_dial_says_how_far_a_worker_may_go_ahead(bound):
    assert pushes_alone(bound)[0] == bound


def test_at_infinity_nobody_waits():
    assert pushes_alone(float("inf"))[0] == 10


def test_who_was_held_back_goes_on_when_the_slowest_has_come():
    answered, loop = pushes_alone(1)
    ticket = loop.clients[1].push_pull()
    loop.pump()
    assert loop.clients[1].is_answered(ticket)
    assert all(not server.mode.held for server in loop.servers)


def test_who_was_held_back_goes_on_when_the_slowest_leaves():
    _, loop = pushes_alone(1)
    assert all(set(server.mode.held) == {0} for server in loop.servers)
    loop.clients[1].leave()
    loop.pump()
    assert all(not server.mode.held for server in loop.servers)


def test_an_answer_that_was_held_back_has_what_came_meanwhile():
    loop = Loop("bounded_staleness", {"bound": 0}, 1, 2, VARIABLE, rate=1.0)
    tickets = []
    for client in loop.clients:
        client.layout.views(client.grads)["p"][...] = 1.0
        tickets.append(client.push_pull())
        loop.pump()
    for worker, client in enumerate(loop.clients):
        client.collect(tickets[worker])
        assert (loop.params(worker)["p"] == -2.0).all()


def test_the_slowest_is_named_after_the_deadline():
    _, loop = pushes_alone(0)
    assert loop.servers[0].mode.late(1000.0) == [] and loop.servers[0].mode.late(0.0) == [1]
    with settings.override(FLAGS_rpc_deadline=1), pytest.raises(Stalled, match="the others have waited .* for rank 3"):
        loop.servers[0].serve()


@hypothesis_settings(max_examples=40)
@given(bound=st.integers(0, 3), steps=st.lists(st.integers(0, 7), min_size=2, max_size=3),
       script=st.lists(st.integers(0, 4), max_size=80), servers=st.integers(1, 2))
def test_the_bound_holds_in_any_order(bound, steps, script, servers):
    loop = Loop("bounded_staleness", {"bound": bound}, servers, len(steps), VARIABLE)
    is_training = [True] * len(steps)

    def body(worker):
        client = loop.clients[worker]
        client.collect(client.pull())
        for step in range(steps[worker]):
            loop.pause(worker)
            others = [loop.clients[other].pushes for other in range(len(steps)) if is_training[other]]
            assert step - min(others) <= bound, "too far ahead when this step begins"
            loop.grads(worker)["p"][...] = loop.params(worker)["p"]
            loop.halves[worker].after_backward()
        is_training[worker] = False
        client.leave()
    loop.run(body, script)
    for server in loop.servers:
        staleness = server.mode.staleness
        assert sum(staleness.values()) == sum(steps) and server.applied == steps
        assert max(staleness, default=0) <= (len(steps) - 1) * (2 * bound + 1) and min(staleness, default=0) >= 0


def test_staleness_is_counted_and_told_at_the_end():
    told = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())
    logger = notices.log()
    logger.handlers[:] = [handler]   # a fixture of all tests puts back what was there
    logger.setLevel(logging.INFO)
    loop = Loop("bounded_staleness", {"bound": float("inf")}, 1, 2, VARIABLE)
    first = loop.clients[0].pull()
    loop.pump()
    loop.clients[0].collect(first)
    for _ in range(3):
        ticket = loop.clients[1].push_pull()
        loop.pump()
        loop.clients[1].collect(ticket)
    loop.clients[0].push_pull()
    loop.pump()
    assert loop.servers[0].mode.staleness == {0: 3, 3: 1}
    for client in loop.clients:
        client.leave()
        loop.pump()
    assert told == ["server 0: 4 pushes were 0.75 updates stale on average, 3 at most (staleness: pushes 0: 3, 3: 1)"]


def test_with_zero_all_workers_go_on_with_the_same_parameters():
    loop, seen = Loop("bounded_staleness", {"bound": 0}, 1, 3, rate=0.05), {}

    def body(worker):
        for step in range(5):
            loop.pause(worker)
            seen.setdefault(step, []).append(loop.clients[worker].params.tobytes())
            problem.gradient(loop, worker, step)
            loop.halves[worker].after_backward()
        loop.clients[worker].leave()
    loop.run(body, [3, 2, 1, 0, 3, 3, 1, 0] * 5)
    assert all(len(set(params)) == 1 for params in seen.values()) and len({params[0] for params in seen.values()}) == 5


def test_pieces_and_norms_keep_the_bound_too():
    loop = Loop("bounded_staleness", {"bound": 1}, 3, 2, rule="lamb", block=4)
    loop.store(problem.truth)
    loop.run(problem.trains(loop, (6, 9)), [3, 4, 4, 4, 0, 1, 2] * 10)
    assert all(server.applied == [6, 9] and not server.mode.held for server in loop.servers)
    assert np.isfinite(loop.values()["w"]).all()


@pytest.mark.parametrize("bound", (-1, "few", float("nan")))
def test_a_bound_that_means_nothing_is_refused(bound):
    with pytest.raises(UsageError, match="bound: expected a number from 0"):
        Loop("bounded_staleness", {"bound": bound})
