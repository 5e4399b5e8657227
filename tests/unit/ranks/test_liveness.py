"""Who has left and who waits elsewhere is known at once; who is only slow is not blamed."""

import threading
import time

import pytest

from fleet_mpi.errors import PeerLost, Stalled, UsageError
from fleet_mpi.ranks import liveness
from fleet_mpi.ranks.liveness import Liveness, News, Place
from fleet_mpi.wire.loopback import Network

EXCHANGE, MEETING = Place.EXCHANGE, Place.MEETING


@pytest.fixture
def workers():
    """Three of them, who have done as many steps as exchanges."""
    network, made = Network(), []
    for rank in range(3):
        made.append(Liveness(network.transport(rank), 3, "worker {}".format,
                             lambda rank=rank: made[rank].done[EXCHANGE]))
    return made


def leave(worker):
    """Say so, without waiting for the others."""
    worker._tell(True, EXCHANGE, "has ended")


def passed(workers, exchanges=0, meetings=0):
    for worker in workers:
        worker.done = [exchanges, meetings]


def test_news_are_what_was_told():
    told = News(True, MEETING, 1 << 40, 2, 3, "a barrier")
    assert News.unpack(told.pack()) == told
    assert News.unpack(told._replace(what="ä" * 100).pack()).what.startswith("ä" * 40)


def test_who_knows_more_waits_shorter():
    for deadline_s in (0.2, 5.0, 180.0):
        assert deadline_s < liveness.worker_limit_s(deadline_s) <= 2.1 * deadline_s
        assert deadline_s + liveness.notice_after_s(deadline_s) < liveness.equal_limit_s(deadline_s)
        assert liveness.beat_every_s(deadline_s) < deadline_s / 4
        assert liveness.first_step_limit_s(deadline_s) == max(deadline_s, 60.0)
        assert liveness.first_step_limit_s(deadline_s, 0.0) == deadline_s


@pytest.mark.parametrize("index, reporters, by_another", (
    (0, (0,), False), (1, (0,), True), (1, (1, 2), False), (2, (1, 2), True), (3, (), True)))
def test_of_several_that_find_the_same_the_first_reports_it(index, reporters, by_another):
    assert liveness.report_by_first(Stalled("it"), index, reporters).reported_by_peer == by_another


def test_a_long_wait_is_told_once(workers):
    for _ in range(3):
        workers[0].look(EXCHANGE, "gradients")
    assert sum(workers[0].transport.network.sent.values()) == 2
    workers[0].passed(EXCHANGE)
    workers[0].look(EXCHANGE, "gradients")
    assert sum(workers[0].transport.network.sent.values()) == 4


def test_one_who_has_left_before_this_exchange_is_named(workers):
    passed(workers, 5)
    leave(workers[1])
    with pytest.raises(PeerLost,
                       match="the gradients: worker 1 has ended after 5 steps, this worker has done 5") as caught:
        workers[2].look(EXCHANGE, "the gradients")
    assert caught.value.reported_by_peer  # worker 0 says it
    with pytest.raises(PeerLost) as caught:
        workers[0].look(EXCHANGE, "the gradients")
    assert not caught.value.reported_by_peer


def test_one_who_has_left_after_it_is_not_to_blame(workers):
    passed(workers, 5)
    workers[1].passed(EXCHANGE)
    leave(workers[1])
    workers[0].look(EXCHANGE, "the gradients")
    workers[0].passed(EXCHANGE)
    with pytest.raises(PeerLost):
        workers[0].look(EXCHANGE, "the gradients")


def test_a_meeting_without_one_who_has_left_ends(workers):
    passed(workers, 5, 1)
    leave(workers[0])
    with pytest.raises(PeerLost, match="barrier: worker 0 has ended.*same calls"):
        workers[1].at_meetings().look("barrier")
    workers[2].at_meetings().passed()
    assert workers[2].done == [5, 2]


def test_two_who_wait_for_each_other_at_different_places_are_told(workers):
    passed(workers, 5, 2)
    workers[1].look(MEETING, "barrier")
    with pytest.raises(UsageError,
                       match=r"the gradients: worker 1 has done 5 steps and waits for something else \(barrier\)"):
        workers[0].look(EXCHANGE, "the gradients")


@pytest.mark.parametrize("mine, theirs", (
    ([5, 3], [5, 2]),      # I have been at that meeting: it is over, its news are old
    ([4, 2], [5, 2])))     # it has done what I wait for: I shall come to the meeting
def test_news_of_another_time_are_no_blame(workers, mine, theirs):
    workers[1].done = theirs
    workers[1].look(MEETING, "barrier")
    workers[0].done = mine
    workers[0].look(EXCHANGE, "the gradients")


def test_those_who_wait_likewise_are_known(workers):
    passed(workers, 5)
    workers[1].look(EXCHANGE, "the gradients")
    workers[2].done = [4, 0]
    workers[2].look(EXCHANGE, "the gradients")
    workers[0].look(EXCHANGE, "the gradients")
    assert workers[0].to_blame(EXCHANGE) == {2}


def test_all_leave_together(workers):
    threads = [threading.Thread(target=worker.leave) for worker in workers]
    for thread in threads[:2]:
        thread.start()
    time.sleep(0.05)
    assert threads[0].is_alive() and threads[1].is_alive()
    threads[2].start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    workers[0].leave()  # again: nothing happens


def test_many_waits_that_nobody_heard_are_taken_in_at_once(workers):
    for _ in range(50):
        workers[1].look(EXCHANGE, "the gradients")
        workers[1].passed(EXCHANGE)
    for _ in range(liveness.HEAR_EVERY - 1):
        workers[0].passed(EXCHANGE)
    assert not workers[0].news
    workers[0].passed(EXCHANGE)
    assert workers[0].news[1].exchanges == 49
