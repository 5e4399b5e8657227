"""Waiting yields at first, then sleeps, and ends at the deadline; with a clock of its own."""

import threading
import time

import pytest

from fleet_mpi import settings
from fleet_mpi.errors import Stalled
from fleet_mpi.ranks import waiting


def test_a_thread_that_another_test_has_left_waiting_does_not_move_the_clock(clock):
    other = threading.Thread(target=lambda: time.sleep(0.001))
    other.start()
    other.join()
    assert clock.now == 100.0 and not clock.sleeps


def test_nobody_sleeps_within_the_spin_after_something_happened(clock):
    happens = [100 + 0.9 * waiting.SPIN_S]   # once, just before the first sleep

    def advance():
        return bool(happens and clock.now >= happens[0] and happens.pop())
    assert waiting.poll(lambda: clock.now >= 100 + 1.8 * waiting.SPIN_S, advance)
    assert not clock.sleeps and clock.yields >= 1.8 * waiting.SPIN_S / 1e-5 - 2
    assert waiting.poll(lambda: clock.sleeps, advance)


def test_sleeps_grow_with_the_time_that_nothing_happened_up_to_the_longest(clock):
    assert waiting.poll(lambda: clock.now >= 101)
    assert clock.sleeps == sorted(clock.sleeps)
    assert clock.sleeps[0] < 1e-4 and clock.sleeps[-1] == waiting.LONGEST_SLEEP_S
    assert clock.yields < 210   # next to no processor time in this second


def test_the_answer_is_late_by_a_small_part_of_the_wait_only(clock):
    for answer in (0.003, 0.02, 0.1):
        start = clock.now
        waiting.wait_until(lambda: clock.now >= start + answer, lambda: "", limit_s=9)
        assert clock.now - start - answer <= max(waiting.SLEEP_PART * answer, 1e-5)


def test_what_is_there_is_not_waited_for(clock):
    waiting.wait_until(lambda: True, lambda: pytest.fail("nobody is late"), limit_s=0)
    assert clock.now == 100.0


def test_the_deadline_raises_the_sentence_given(clock):
    with pytest.raises(Stalled, match=r"^no answer from server 3 \(waited 1.5 s; FLAGS_rpc_deadline sets it in ms\)$"):
        waiting.wait_until(lambda: False, lambda: "no answer from server 3", limit_s=1.5)
    assert 101.5 < clock.now < 101.6


def test_the_deadline_is_the_setting_and_zero_means_for_ever(clock, monkeypatch):
    monkeypatch.setattr(settings, "get", {"FLAGS_rpc_deadline": 2500}.get)
    assert waiting.deadline_s() == 2.5
    with pytest.raises(Stalled, match="waited 2.5 s"):
        waiting.wait_until(lambda: False, lambda: "it")
    monkeypatch.setattr(settings, "get", {"FLAGS_rpc_deadline": 0}.get)
    assert waiting.deadline_s() > 1e8


def test_the_transport_goes_on_while_somebody_waits_and_its_work_is_no_reason_to_sleep(clock):
    class Working:
        """Three calls that do something."""

        calls = 0

        def progress(self):
            self.calls += 1
            return self.calls <= 3
    transport = Working()
    waiting.wait_until(lambda: transport.calls >= 4, lambda: "", transport.progress, limit_s=1)
    assert (transport.calls, clock.yields, clock.sleeps) == (4, 1, [])


def test_time_in_which_the_process_stood_still_itself_does_not_count(clock):
    begun, looks = clock.now, []

    def look():
        looks.append(clock.now)
        if len(looks) == 50:
            clock.now += 1000
    with pytest.raises(Stalled):
        waiting.wait_until(look, lambda: "it", limit_s=1.5)
    assert 1001.5 < clock.now - begun < 1001.7


def test_a_long_wait_is_looked_at_now_and_then_with_the_seconds_that_nothing_happened(clock):
    looks, happens = [], [100.5]

    def advance():
        return bool(happens and clock.now >= happens[0] and happens.pop())
    assert not waiting.poll(lambda: False, advance, looks.append, limit_s=1)
    assert 101.5 < clock.now < 101.6
    assert 1.4 / (waiting.LOOK_EVERY_S + waiting.LONGEST_SLEEP_S) < len(looks) <= 1.6 / waiting.LOOK_EVERY_S
    again = next(number for number in range(1, len(looks)) if looks[number] < looks[number - 1])
    assert 0.45 < looks[again - 1] < 0.5 and looks[again] < 0.05 and looks[-1] > 0.95


def test_settings_are_read_before_the_loop_and_not_in_it(clock, monkeypatch):
    reads = []
    monkeypatch.setattr(settings, "get", lambda name: reads.append(name) or 2500)
    with pytest.raises(Stalled):
        waiting.wait_until(lambda: False, lambda: "it", look=lambda idle_s: None)
    assert reads == ["FLAGS_rpc_deadline"]
