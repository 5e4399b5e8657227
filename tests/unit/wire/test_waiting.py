"""Waiting yields at first, then sleeps, and ends at the deadline; with a clock of its own."""

import os
import time

import pytest

from fleet_mpi import settings
from fleet_mpi.errors import Stalled
from fleet_mpi.wire import waiting


class Clock:
    """Time passes only by yielding (10 us) and sleeping."""

    def __init__(self):
        self.now, self.yields, self.sleeps = 100.0, 0, []

    def sched_yield(self):
        self.now += 1e-5
        self.yields += 1

    def sleep(self, seconds):
        self.now += seconds
        self.sleeps.append(seconds)

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The clock that waiting looks at."""
    made = Clock()
    monkeypatch.setattr(os, "sched_yield", made.sched_yield)
    monkeypatch.setattr(time, "sleep", made.sleep)
    monkeypatch.setattr(time, "monotonic", made.monotonic)
    return made


def test_nobody_sleeps_within_the_spin_after_something_happened(clock):
    backoff = waiting.Backoff()
    while clock.now < 100 + waiting.SPIN:
        backoff.rest()
    backoff.wake()
    woken = clock.now
    while clock.now < woken + waiting.SPIN:
        backoff.rest()
    assert not clock.sleeps and clock.yields >= 2 * waiting.SPIN / 1e-5 - 2
    backoff.rest()
    assert clock.sleeps


def test_sleeps_grow_with_the_time_that_nothing_happened_up_to_the_longest(clock):
    backoff = waiting.Backoff()
    while clock.now < 101:
        backoff.rest()
    assert clock.sleeps == sorted(clock.sleeps)
    assert clock.sleeps[0] < 1e-4 and clock.sleeps[-1] == waiting.LONGEST_SLEEP
    assert clock.yields < 210   # next to no processor time in this second


def test_the_answer_is_late_by_a_small_part_of_the_wait_only(clock):
    for answer in (0.003, 0.02, 0.1):
        start = clock.now
        waiting.wait_until(lambda: clock.now >= start + answer, lambda: "", longest=lambda: 9)
        assert clock.now - start - answer <= max(waiting.SLEEP_PART * answer, 1e-5)


def test_what_is_there_is_not_waited_for(clock):
    waiting.wait_until(lambda: True, lambda: pytest.fail("nobody is late"), longest=lambda: 0)
    assert clock.now == 100.0


def test_the_deadline_raises_the_sentence_given(clock):
    with pytest.raises(Stalled, match=r"^no answer from server 3 \(waited 1.5 s; FLAGS_rpc_deadline sets it in ms\)$"):
        waiting.wait_until(lambda: False, lambda: "no answer from server 3", longest=lambda: 1.5)
    assert 101.5 < clock.now < 101.6


def test_the_deadline_is_the_setting_and_zero_means_for_ever(clock, monkeypatch):
    monkeypatch.setattr(settings, "get", {"FLAGS_rpc_deadline": 2500}.get)
    assert waiting.deadline() == 2.5
    with pytest.raises(Stalled, match="waited 2.5 s"):
        waiting.wait_until(lambda: False, lambda: "it")
    monkeypatch.setattr(settings, "get", {"FLAGS_rpc_deadline": 0}.get)
    assert waiting.deadline() > 1e8


def test_the_transport_goes_on_while_somebody_waits_and_its_work_is_no_reason_to_sleep(clock):
    class Working:
        """Three calls that do something."""

        calls = 0

        def progress(self):
            self.calls += 1
            return self.calls <= 3
    transport = Working()
    waiting.wait_until(lambda: transport.calls >= 4, lambda: "", transport, longest=lambda: 1)
    assert (transport.calls, clock.yields, clock.sleeps) == (4, 1, [])


def test_time_in_which_the_process_stood_still_itself_does_not_count(clock):
    begun, looks = clock.now, []

    def look():
        looks.append(clock.now)
        if len(looks) == 50:
            clock.now += 1000
    with pytest.raises(Stalled):
        waiting.wait_until(look, lambda: "it", longest=lambda: 1.5)
    assert 1001.5 < clock.now - begun < 1001.7


def test_a_long_wait_is_told_once_after_a_quarter_of_it(clock):
    begun, told = clock.now, []
    with pytest.raises(Stalled):
        waiting.wait_until(lambda: False, lambda: "it", longest=lambda: 2,
                           on_long=lambda: told.append(clock.now - begun))
    assert len(told) == 1 and 0.5 < told[0] < 0.52


@pytest.mark.parametrize("index", (0, 1))
def test_of_several_that_stall_together_the_first_says_so(clock, index):
    with pytest.raises(Stalled) as stalled, waiting.told_by_the_first(index):
        waiting.wait_until(lambda: False, lambda: "it", longest=lambda: 1)
    assert stalled.value.told_elsewhere == (index > 0)
