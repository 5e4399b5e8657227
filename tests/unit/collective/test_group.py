"""What the workers of a group do together, and whom they name when one does not come."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.collective.exact import ExactAllReduce
from fleet_mpi.collective.group import Group
from fleet_mpi.errors import PeerLost, Stalled
from fleet_mpi.ranks.liveness import Liveness, Place
from fleet_mpi.wire.loopback import Network


def groups_of(count, has_liveness=False):
    """The workers of one group."""
    network, news = Network(), Network()
    return [Group(number, [network.transport(number)], count, "worker {}".format,
                  Liveness(news.transport(number), count, "worker {}".format) if has_liveness else None)
            for number in range(count)]


def together(groups, work):
    """What ``work(group)`` returns or raises on each."""
    found = [None] * len(groups)

    def run(number, group):
        try:
            found[number] = work(group)
        except Exception as error:
            found[number] = error
    threads = [threading.Thread(target=run, args=item, daemon=True) for item in enumerate(groups)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return found


@pytest.fixture
def soon():
    """A deadline that is soon over."""
    before = settings.get("FLAGS_rpc_deadline")
    settings.put("FLAGS_rpc_deadline", 200)
    yield
    settings.put("FLAGS_rpc_deadline", before)


def test_values_of_worker_0_are_everybody_s():
    def work(group):
        arrays = [np.full((2, 3), group.index, "float32"), np.array([group.index == 0]), np.zeros(0)]
        group.broadcast(arrays)
        return arrays
    for first, second, _ in together(groups_of(3), work):
        assert (first == 0).all() and second.all()


def test_lists_of_arrays_are_gathered_whatever_their_lengths():
    def work(group):
        rows = 2 * group.index
        return group.gather([np.full(rows, group.index), np.full((rows, 3), group.index, "float32")])
    for found in together(groups_of(3), work):
        assert [one[0].tolist() for one in found] == [[], [1, 1], [2] * 4]
        assert [one[1].shape for one in found] == [(0, 3), (2, 3), (4, 3)]


def test_sums_that_are_under_way_go_on_while_others_gather():
    """Worker 0 waits for a sum before it comes to gather; worker 1 gathers meanwhile."""
    def work(group):
        under_way = [ExactAllReduce(group.lanes[0], group.ranks, 4096).start(np.ones(100000, "float32"))]
        if group.index == 0:
            group.finish(under_way, "the sum")
        return group.gather([np.array([group.index])], under_way)
    assert [[one[0].item() for one in found] for found in together(groups_of(2), work)] == [[0, 1]] * 2


def test_one_worker_needs_nobody():
    alone = Group(0, [], 1)
    alone.broadcast([np.zeros(3)])
    assert alone.gather([np.array([4])])[0][0].tolist() == [4]


@pytest.mark.parametrize("has_liveness", (False, True))
def test_who_does_not_come_is_named_by_the_first_who_waits(soon, has_liveness):
    groups = groups_of(3, has_liveness)

    def work(group):
        group.finish([ExactAllReduce(group.lanes[0], group.ranks).start(np.ones(30000, "float32"))], "the sum")
    first, second = together(groups[:2], work)
    assert isinstance(first, Stalled) and isinstance(second, Stalled)
    assert "worker 0: the sum: waited" in str(first)
    assert str(first).count("worker 2") == 1 and "worker 1" not in str(first)
    assert not first.reported_by_peer and second.reported_by_peer


def test_one_who_waits_too_is_not_blamed_though_its_sum_is_awaited(soon):
    """The only chunk belongs to worker 1, who waits for worker 2: worker 0 must not name worker 1."""
    groups = groups_of(3, True)

    def work(group):
        group.finish([ExactAllReduce(group.lanes[0], group.ranks).start(np.ones(3, "float32"))], "the sum")
    first, second = together(groups[:2], work)
    assert "for worker 2 (" in str(first) and "for worker 2 (" in str(second)


def test_one_who_has_left_is_named_before_the_deadline():
    groups = groups_of(2, True)
    groups[1].liveness._tell(True, Place.EXCHANGE, "has ended")
    with pytest.raises(PeerLost, match="the first values: worker 1 has ended"):
        groups[0].finish([ExactAllReduce(groups[0].lanes[0], [0, 1]).start(np.ones(3))], "the first values")


def test_the_first_step_has_more_time(soon):
    groups = groups_of(2)
    groups[0].first_step_s = 0.6
    with pytest.raises(Stalled, match="waited 0.6 s"):
        groups[0].finish([ExactAllReduce(groups[0].lanes[0], [0, 1]).start(np.ones(3))], "a step")


@pytest.mark.parametrize("waits_s, told", ((0.4, 0), (0.6, 1)))
def test_others_are_told_of_a_wait_that_is_long_and_once(clock, waits_s, told):
    groups = groups_of(2, has_liveness=True)
    until, said = clock.now + waits_s, []
    groups[0].liveness._tell = lambda *words: said.append(words)
    sum_under_way = SimpleNamespace(is_over=lambda: clock.now > until, advance=lambda: False, waits_for=lambda: [1])
    groups[0].finish([sum_under_way], "a step")
    assert len(said) == told
