"""An exception from outside in the middle of a request: it is over before the exception goes on, or nothing more is
asked."""

import numpy as np
import pytest

from fleet_mpi.errors import FleetError, PeerLost
from fleet_mpi.parameter_server.description import param, rate
from fleet_mpi.parameter_server.state import ServerState
from fleet_mpi.ranks import liveness
from tests.unit.parameter_server.loopback_job import VARIABLES, Job


class Interrupted(BaseException):
    """As a signal's handler raises it."""


def interrupting(job, *waits):
    """Let the numbered waits of worker 0, from now on, be interrupted before the servers go on."""
    count = iter(range(1000))

    def wait():
        if next(count) in waits:
            raise Interrupted
        job.pump()
        return True
    job.clients[0].transport.on_wait = wait


def filled():
    job = Job(2)
    return job, job.fill()


@pytest.mark.parametrize("wait", range(4))
def test_a_step_is_over_before_the_exception_goes_on(wait):
    jobs = Job(2), Job(2)
    for job in jobs:
        job.fill()
    interrupting(jobs[0], wait)
    with pytest.raises(Interrupted):
        for _ in range(4):
            jobs[0].train(1)
    for _ in range(jobs[0].clients[0].pushes):
        jobs[1].train(1)
    assert jobs[0].clients[0].pushes and all(np.array_equal(jobs[0].params()[variable.name],
                                                            jobs[1].params()[variable.name])
                                             for variable in VARIABLES)


@pytest.mark.parametrize("wait", range(9))
@pytest.mark.parametrize("block", (ServerState.frozen, lambda state: state.copied([param("a")])))
def test_servers_are_thawed_and_what_is_fetched_later_is_right_wherever_a_save_was_interrupted(block, wait):
    job, values = filled()
    interrupting(job, wait)
    state = ServerState(job.clients[0])
    with pytest.raises(Interrupted), block(state):
        for _ in range(5):
            state.fetch(param("a"))
    assert not any(server.snapshots.freezers or server.snapshots.copies for server in job.servers)
    with state.frozen():
        assert all(np.array_equal(state.fetch(param(name)), expected) for name, expected in values.items())
    job.train(1)


def test_a_second_exception_goes_on_at_once_and_nothing_more_can_be_asked():
    job, _ = filled()
    interrupting(job, 0, 1)
    state = ServerState(job.clients[0])
    with pytest.raises(Interrupted), state.frozen():
        state.fetch(param("a"))
    for ask in (lambda: state.fetch(param("a")), job.clients[0].push_pull, job.clients[0].pull, job.clients[0].leave):
        with pytest.raises(PeerLost, match="worker 0 was interrupted by Interrupted in the middle of a request"):
            ask()


def test_a_request_that_does_not_come_to_its_end_in_time_cuts_the_worker_off(monkeypatch):
    monkeypatch.setattr(liveness, "FINISHING_S", 0.05)
    job, _ = filled()
    calls = []

    def wait():
        if not calls:
            calls.append(1)
            raise Interrupted
        return False
    job.clients[0].transport.on_wait = wait
    with pytest.raises(Interrupted):
        job.clients[0].collect(job.clients[0].push_pull())
    assert job.clients[0].is_cut_off


def test_one_that_comes_while_messages_are_made_cuts_the_worker_off():
    job, _ = filled()
    post, sent = job.clients[0].transport.post_send, []

    def post_send(*message):
        if sent:
            raise Interrupted
        sent.append(post(*message))
        return sent[0]
    job.clients[0].transport.post_send = post_send
    with pytest.raises(Interrupted):
        job.clients[0].push_pull()
    assert job.clients[0].is_cut_off


def test_an_error_of_the_request_itself_cuts_nobody_off():
    job, _ = filled()
    with pytest.raises(FleetError):
        ServerState(job.clients[0]).fetch(rate("no such rate"))
    assert not job.clients[0].is_cut_off
