"""Being asked to stop: signals become a flag, and workers agree after which step to follow it."""

import os
import signal
import time

import pytest

from fleet_mpi import settings
from fleet_mpi.errors import Stalled, UsageError
from fleet_mpi.ranks import preemption
from fleet_mpi.ranks.preemption import Agreement

named = "worker {}".format


@pytest.fixture(autouse=True)
def no_long_goodbyes(monkeypatch):
    """Who does not come for a last word is not waited for as long as in a job."""
    monkeypatch.setattr(preemption, "_LAST_WORDS_S", 0.3)


@pytest.fixture
def watched():
    """Signals ask, for the time of the test."""
    preemption.watch()
    yield
    preemption.release()


@pytest.mark.parametrize("number", (signal.SIGUSR1, signal.SIGTERM))
def test_a_signal_asks_and_does_not_kill(watched, number):
    assert not preemption.requested()
    os.kill(os.getpid(), number)
    assert preemption.requested()


def test_released_signals_belong_to_whom_they_belonged_to():
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        preemption.watch()
        preemption.watch()
        os.kill(os.getpid(), signal.SIGUSR1)
        preemption.release()
        assert signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN and not preemption.requested()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_one_worker_by_itself_stops_when_asked():
    agreement = Agreement(None)
    assert not agreement.reached(1, False) and agreement.reached(2, True)
    assert agreement.gather(2) == {}
    agreement.close()


def train(comm, wishes, steps=400, together=True, pause=lambda rank: 0.0, leaves_after=None):
    """The step after which a worker stops, or None; ``wishes``: {worker: step from which it is asked}."""
    agreement = Agreement(comm, named, together)
    stopped = None
    for step in range(1, (leaves_after or {}).get(comm.rank, steps) + 1):
        time.sleep(pause(comm.rank))
        if agreement.reached(step, step >= wishes.get(comm.rank, steps + 1)):
            stopped = step, agreement.gather(step), sorted(agreement.left)
            break
    agreement.close()
    return stopped


@pytest.mark.parametrize("wishes", ({0: 17}, {2: 17}, {0: 17, 1: 18, 2: 40}), ids=("first", "last", "all"))
def test_workers_that_train_together_stop_after_the_same_step_whoever_was_asked(on_ranks, wishes):
    results = on_ranks(3, lambda comm: train(comm, wishes))
    step = results[0][0]
    assert results == [(step, {0: step, 1: step, 2: step}, [])] * 3
    # A look at least every so many steps.
    assert 17 <= step <= 17 + preemption._MOST_STEPS


def test_slow_steps_are_looked_at_one_by_one(on_ranks, monkeypatch):
    monkeypatch.setattr(preemption, "_LOOK_EVERY_S", 0.001)
    results = on_ranks(2, lambda comm: train(comm, {1: 7}, pause=lambda rank: 0.003))
    assert [result[0] for result in results] == [7, 7]


def test_workers_that_train_by_themselves_stop_where_they_are(on_ranks):
    results = on_ranks(2, lambda comm: train(comm, {0: 20}, together=False, pause=lambda rank: 0.002 * (1 + 3 * rank)))
    (first, *_), (second, *_) = results
    assert first == 20 and second < 20
    assert results == [(first, {0: first, 1: second}, []), (second, {0: first, 1: second}, [])]


@pytest.mark.parametrize("together", (True, False))
def test_a_worker_that_has_left_is_not_waited_for(on_ranks, together):
    results = on_ranks(3, lambda comm: train(comm, {0: 60}, together=together, leaves_after={1: 5},
                                             pause=lambda rank: 0.002))
    assert results[1] is None
    for result in (results[0], results[2]):
        assert set(result[1]) == {0, 2} and result[2] == [1]


def test_nobody_stops_where_nobody_is_asked(on_ranks):
    assert on_ranks(3, lambda comm: train(comm, {}, steps=50)) == [None] * 3


def test_the_last_of_all_workers_stops_alone(on_ranks):
    results = on_ranks(2, lambda comm: train(comm, {1: 90}, steps=100, leaves_after={0: 3}))
    assert results == [None, (90, {1: 90}, [0])]


def test_workers_that_count_differently_are_told_so(on_ranks):
    results = on_ranks(2, lambda comm: Agreement(comm, named).reached(1 + comm.rank, False))
    assert all(isinstance(result, UsageError) for result in results)
    assert "worker 0 asks whether to stop after step 1, worker 1 after step 2" in str(results[0])


def test_a_worker_that_stays_away_is_named(on_ranks):
    with settings.override(FLAGS_rpc_deadline=250):
        results = on_ranks(2, lambda comm: comm.rank == 0 and Agreement(comm, named).reached(1, False))
    assert isinstance(results[0], Stalled) and "worker 1 did not come within 0.25 s" in str(results[0])
