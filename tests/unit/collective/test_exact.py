"""Sums in rank order, whatever the cut, the number of ranks and the order of events."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings, strategies as some

from fleet_mpi.collective import exact
from fleet_mpi.collective.exact import ExactAllReduce, add_in_order
from fleet_mpi.ranks.channels import Channel
from tests.exact.reducing import in_rank_order, network_of, parts_of, reduced


def exact_reducers(ranks, chunk=exact.CHUNK, longest_short=0):
    network, reducers = network_of(lambda transport: ExactAllReduce(transport, range(ranks), chunk), ranks)
    for reducer in reducers:
        reducer.longest_short = longest_short
    return network, reducers


@settings(max_examples=40)
@given(ranks=some.integers(1, 5), lengths=some.lists(some.integers(0, 60), min_size=1, max_size=4),
       chunk=some.sampled_from((1, 24, 64, 1 << 19)), smallest=some.sampled_from((1, 40, 1 << 12)),
       dtype=some.sampled_from(("float32", "float64", "float16", "int64")), seed=some.integers(0, 10),
       short=some.sampled_from((0, 100, 1 << 19)))
def test_any_cut_gives_the_sum_in_rank_order(ranks, lengths, chunk, smallest, dtype, seed, short):
    given = [parts_of(ranks, length, dtype, seed + number) for number, length in enumerate(lengths)]
    _, reducers = exact_reducers(ranks, chunk, short)
    before, exact.SMALLEST = exact.SMALLEST, smallest
    try:
        found = reduced(reducers, [[parts[rank] for parts in given] for rank in range(ranks)], seed)
    finally:
        exact.SMALLEST = before
    for rank in range(ranks):
        for parts, array in zip(given, found[rank]):
            assert array.tobytes() == in_rank_order(parts).tobytes()


@pytest.mark.parametrize("ranks", (2, 3, 5))
def test_an_array_that_is_started_later_does_not_overtake_one_of_many_chunks(ranks):
    lengths = (5000, 100, 3000, 1)
    given = [parts_of(ranks, length, "float32", number) for number, length in enumerate(lengths)]
    for seed in range(5):
        _, reducers = exact_reducers(ranks, 4096)
        found = reduced(reducers, [[parts[rank] for parts in given] for rank in range(ranks)], seed)
        assert all(array.tobytes() == in_rank_order(parts).tobytes() for own in found
                   for parts, array in zip(given, own))


def test_all_ranks_take_turns_to_add_also_where_arrays_are_one_chunk():
    network, reducers = exact_reducers(3)
    reduced(reducers, [[np.ones(10, "float32")] * 6] * 3)
    adding = {target for (_, target, channel), count in network.sent.items() if channel == Channel.PART
              for _ in range(count)}
    assert adding == {0, 1, 2}
    assert set(network.sent.values()) == {2}


def test_every_byte_travels_twice_between_a_rank_and_the_owner():
    network, reducers = exact_reducers(4, 1 << 12)
    nbytes = []
    network.fault = lambda source, target, channel, array: nbytes.append(len(array))
    reduced(reducers, [[np.ones(40000, "float32")]] * 4)
    assert sum(nbytes) == 2 * 3 * 160000


def test_who_has_not_sent_a_part_is_waited_for_not_who_waits_too():
    _, reducers = exact_reducers(3, 1024)
    under_way = [reducer.start(np.ones(30000, "float32")) for reducer in reducers[:2]]
    while any([one.advance() for one in under_way]):
        pass
    assert [one.waits_for() for one in under_way] == [[2], [2]]
    assert not any(one.is_over() for one in under_way)


def test_an_array_that_is_over_waits_for_nobody():
    _, reducers = exact_reducers(2)
    made = [reducer.start(np.ones(5)) for reducer in reducers]
    while not all(one.is_over() for one in made):
        for one in made:
            one.advance()
    assert [one.waits_for() for one in made] == [[], []] and not made[0].advance()


def test_an_empty_array_is_over_at_once():
    _, reducers = exact_reducers(2)
    assert reducers[0].start(np.zeros(0, "float32")).is_over()


@pytest.mark.parametrize("count", (1, 2, 3, 4, 5))
@pytest.mark.parametrize("place", range(5))
def test_parts_are_added_in_order_wherever_the_sum_goes(count, place):
    parts = parts_of(count, 50, "float32", count)
    right, out = in_rank_order(parts), parts[place % count]
    add_in_order(parts, out)
    assert out.tobytes() == right.tobytes()


def test_half_precision_is_widened_and_rounded_once():
    parts = [np.array([value], "float16") for value in (2048, 1, 1)]
    add_in_order(parts, parts[1])
    assert parts[1].tolist() == [2050]  # step by step each 1 would be lost


def test_the_bits_are_those_of_the_table():
    """A change of order shows here, whatever the machine."""
    found = {}
    for ranks in (2, 3, 5):
        _, reducers = exact_reducers(ranks, 4096)
        array = reduced(reducers, [[part] for part in parts_of(ranks, 7001, "float32", 1)])[0][0]
        found[ranks] = hashlib.sha256(array.tobytes()).hexdigest()[:16]
    assert found == {2: "d159a001be68add3", 3: "359a3e1ea2fd74a6", 5: "b0a28d1c0288e04e"}
