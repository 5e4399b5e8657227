"""Background threads: bounds, ends and errors."""

import threading

import pytest

from fleet_mpi.data.background import Ahead, Channel, start_thread
from fleet_mpi.errors import UsageError


def test_a_channel_gives_items_in_the_order_they_were_put():
    channel = Channel(10)
    for number in range(5):
        assert channel.put(number)
    channel.finish()
    assert list(channel) == [0, 1, 2, 3, 4]


def test_a_full_channel_makes_the_producer_wait_until_there_is_room():
    channel, second_is_in = Channel(1), threading.Event()
    channel.put("first")

    def put_second():
        channel.put("second")
        second_is_in.set()

    start_thread(put_second)
    assert not second_is_in.wait(0.05)
    assert next(channel) == "first"
    assert second_is_in.wait(10)


def test_closing_lets_a_waiting_producer_go_with_false():
    channel, answers, done = Channel(1), [], threading.Event()
    channel.put("first")

    def put_second():
        answers.append(channel.put("second"))
        done.set()

    start_thread(put_second)
    channel.close()
    assert done.wait(10)
    assert answers == [False]


def test_an_error_comes_after_the_items_before_it():
    def source():
        yield 1
        raise KeyError("broken")

    ahead = Ahead(source, 4)
    assert next(ahead) == 1
    with pytest.raises(KeyError, match="broken"):
        next(ahead)
    assert list(ahead) == []


def test_leaving_early_closes_the_source(endless):
    ahead = Ahead(endless, 2)
    next(ahead)
    ahead.close()
    assert endless.closed.wait(10)


def test_dropping_the_iterator_closes_the_source(endless):
    next(Ahead(endless, 2))
    assert endless.closed.wait(10)


def test_reading_ahead_starts_before_the_first_item_is_asked_for():
    started = threading.Event()
    ahead = Ahead(lambda: started.set() or iter(()), 1)
    assert started.wait(10)
    ahead.close()


@pytest.mark.parametrize("capacity", [0, -1, 1.5, "many"])
def test_a_capacity_that_means_nothing_is_refused(capacity):
    with pytest.raises(UsageError, match="at least 1"):
        Channel(capacity)
