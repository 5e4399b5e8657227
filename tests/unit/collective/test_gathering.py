"""Every rank's array reaches every other."""

import numpy as np
import pytest

from fleet_mpi.collective import gathering
from fleet_mpi.collective.gathering import Gathering
from fleet_mpi.wire.loopback import Network


def gathered(lengths, dtype="float32"):
    """What each rank has of all, where rank r brings lengths[r] numbers."""
    network, ranks = Network(), list(range(len(lengths)))
    parts = [np.arange(length).astype(dtype) + 100 * rank for rank, length in enumerate(lengths)]
    found = [[parts[rank] if rank == me else np.empty_like(parts[rank]) for rank in ranks] for me in ranks]
    made = [Gathering(network.transport(me), ranks, found[me]) for me in ranks]
    while not all(one.is_over() for one in made):
        assert any([one.advance() for one in made])
    return parts, found


@pytest.mark.parametrize("largest", (8, 1 << 30))
@pytest.mark.parametrize("lengths", ((3,), (3, 3), (5, 0, 7), (0, 0), (1, 2, 3, 4, 5)))
def test_all_have_all(lengths, largest, monkeypatch):
    monkeypatch.setattr(gathering, "LARGEST", largest)
    parts, found = gathered(lengths)
    for own in found:
        assert [one.tolist() for one in own] == [one.tolist() for one in parts]


def test_a_part_may_be_any_view():
    network = Network()
    whole = np.arange(20).reshape(10, 2)
    rows = [whole[::2, 1], np.zeros(5, whole.dtype)], [np.zeros(5, whole.dtype), np.ones(5, whole.dtype)]
    made = [Gathering(network.transport(me), [0, 1], rows[me]) for me in (0, 1)]
    while not all(one.is_over() for one in made):
        assert any([one.advance() for one in made])
    assert rows[1][0].tolist() == whole[::2, 1].tolist() and rows[0][1].tolist() == [1] * 5


def test_who_has_not_sent_is_waited_for():
    network = Network()
    made = Gathering(network.transport(0), [0, 1, 2], [np.zeros(3)] * 3)
    Gathering(network.transport(2), [0, 1, 2], [np.zeros(3)] * 3)
    made.advance()
    assert made.waits_for() == [1]
