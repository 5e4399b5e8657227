"""The first rank's values reach all, piece by piece."""

import numpy as np
import pytest

from fleet_mpi.collective import broadcast
from fleet_mpi.collective.broadcast import Broadcast, children
from fleet_mpi.wire.loopback import Network


def spread(ranks, array, network=None, order=lambda ranks: ranks):
    """Every rank's array in the end."""
    network = network or Network()
    arrays = [array.copy() if rank == ranks[0] else np.zeros_like(array) for rank in ranks]
    made = [Broadcast(network.transport(rank), ranks, one) for rank, one in zip(ranks, arrays)]
    while not all(one.is_over() for one in made):
        assert any([made[number].advance() for number in order(list(range(len(ranks))))])
    return arrays


@pytest.mark.parametrize("count", (1, 2, 3, 4, 7))
@pytest.mark.parametrize("piece", (8, 1 << 20))
def test_all_have_the_first_rank_s_values(count, piece, monkeypatch):
    monkeypatch.setattr(broadcast, "PIECE", piece)
    array = np.arange(11, dtype="float64").reshape(11, 1)
    for order in (sorted, lambda ranks: ranks[::-1]):
        assert all((one == array).all() for one in spread(list(range(count)), array, order=order))


@pytest.mark.parametrize("array",
                         (np.array(3.0), np.zeros((0, 4), "float32"), np.array([True, False]), np.array([7], "int64")))
def test_any_shape_and_type(array):
    assert all(one.tobytes() == array.tobytes() and one.shape == array.shape for one in spread([0, 1, 2], array))


def test_the_first_rank_may_be_any():
    assert [one.tolist() for one in spread([2, 0, 1], np.array([5]))] == [[5]] * 3


def test_no_rank_sends_to_more_than_two():
    assert [children(number, 6) for number in range(6)] == [[1, 2], [3, 4], [5], [], [], []]
    network = Network()
    spread(list(range(7)), np.zeros(3), network)
    assert sorted((source, target) for source, target, _ in network.sent) == [
        (0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)]


def test_who_has_not_passed_on_is_waited_for():
    network = Network()
    made = Broadcast(network.transport(3), [0, 1, 2, 3], np.zeros(4))
    made.advance()
    assert made.waits_for() == [1] and not made.is_over()
