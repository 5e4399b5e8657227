"""Short arrays go to everybody at once: one message each way between two ranks, added up in rank order."""

import numpy as np
import pytest

from fleet_mpi.collective import exact
from fleet_mpi.collective.direct import DirectAllReduce
from fleet_mpi.collective.exact import ExactAllReduce, add_in_order
from fleet_mpi.ranks.channels import Channel
from tests.exact.reducing import in_rank_order, network_of, parts_of, reduced


def direct_reducers(ranks):
    return network_of(lambda transport: DirectAllReduce(transport, range(ranks), add_in_order), ranks)


@pytest.mark.parametrize("ranks", (2, 3, 5))
@pytest.mark.parametrize("dtype", ("float32", "float16", "int64"))
def test_sums_have_the_bits_of_rank_order(ranks, dtype):
    given = [parts_of(ranks, length, dtype, length) for length in (1, 50, 50, 7)]
    for seed in range(3):
        _, reducers = direct_reducers(ranks)
        found = reduced(reducers, [[parts[rank] for parts in given] for rank in range(ranks)], seed)
        assert all(array.tobytes() == in_rank_order(parts).tobytes() for own in found
                   for parts, array in zip(given, own))


def test_one_message_goes_each_way():
    network, reducers = direct_reducers(3)
    reduced(reducers, [[np.ones(10, "float32")]] * 3)
    assert network.sent == {(source, target, Channel.WHOLE): 1 for source in range(3) for target in range(3)
                            if source != target}


def test_who_is_late_is_named_and_the_array_stays_as_it_is():
    _, reducers = direct_reducers(3)
    array = np.ones(4, "float32")
    mine = reducers[0].start(array)
    reducers[2].start(np.ones(4, "float32"))
    mine.advance()
    assert mine.waits_for() == [1] and reducers[0].waits_for() == [1] and not mine.is_over()
    assert (array == 1).all()
    reducers[1].start(np.ones(4, "float32"))
    assert mine.advance() and mine.is_over() and (array == 3).all()
    assert not mine.advance() and reducers[0].waits_for() == []


def test_buffers_are_used_again():
    _, reducers = direct_reducers(2)
    for _ in range(3):
        reduced(reducers, [[np.ones(10, "float32")]] * 2)
    assert len(reducers[0].unused[40]) == 1


@pytest.mark.parametrize("ranks, nbytes, goes_direct", [(2, exact.DIRECT, True), (2, exact.DIRECT + 4, False),
                                                        (5, exact.DIRECT // 4, True), (5, exact.DIRECT // 2, False)])
def test_short_is_what_its_copies_for_all_others_say(ranks, nbytes, goes_direct):
    network, reducers = network_of(lambda transport: ExactAllReduce(transport, range(ranks)), ranks)
    reduced(reducers, [[np.zeros(nbytes // 4, "float32")]] * ranks)
    assert ({channel for _, _, channel in network.sent} == {Channel.WHOLE}) == goes_direct
