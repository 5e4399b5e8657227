"""Sums by node: the documented order, fewer bytes between nodes, and who counts as a node."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as some

from fleet_mpi.collective.by_node import ByNodeAllReduce, nodes_of
from fleet_mpi.collective.exact import ExactAllReduce
from fleet_mpi.errors import UsageError
from tests.exact.reducing import in_rank_order, network_of, parts_of, reduced


def by_node_reducers(nodes, chunk=1 << 19):
    ranks = sum(map(len, nodes))
    return network_of(lambda transport: ByNodeAllReduce(transport, nodes, chunk), ranks)


def in_node_order(parts, nodes):
    """Within nodes first."""
    return in_rank_order([in_rank_order([parts[rank] for rank in node]) for node in nodes])


@settings(max_examples=30)
@given(nodes=some.integers(1, 3), size=some.integers(1, 3),
       lengths=some.lists(some.integers(0, 1500), min_size=1, max_size=3),
       chunk=some.sampled_from((256, 1000, 1 << 19)), dtype=some.sampled_from(("float32", "float64", "float16")),
       seed=some.integers(0, 5))
def test_the_sum_is_that_of_nodes_in_their_order(nodes, size, lengths, chunk, dtype, seed):
    ranks = nodes * size
    layout = nodes_of(["same"] * ranks, size)
    given = [parts_of(ranks, length, dtype, seed + number) for number, length in enumerate(lengths)]
    _, reducers = by_node_reducers(layout, chunk)
    found = reduced(reducers, [[parts[rank] for parts in given] for rank in range(ranks)], seed)
    for own in found:
        for parts, array in zip(given, own):
            assert array.tobytes() == in_node_order(parts, layout).tobytes()


def test_nodes_may_be_any_ranks():
    layout, parts = [[0, 2], [1, 3]], parts_of(4, 2000, "float32")
    _, reducers = by_node_reducers(layout, 1000)
    found = reduced(reducers, [[part] for part in parts])
    assert {array.tobytes() for array, in found} == {in_node_order(parts, layout).tobytes()}
    assert found[0][0].tobytes() != in_rank_order(parts).tobytes()  # another order than that of ``exact``


def test_a_node_of_three_sends_a_third_of_the_bytes_to_others():
    layout, crossing = [[0, 1, 2], [3, 4, 5]], {}
    for name, (network, reducers) in {
            "flat": network_of(lambda transport: ExactAllReduce(transport, range(6)), 6),
            "by node": by_node_reducers(layout)}.items():
        total = crossing[name] = []
        network.fault = lambda source, target, channel, array: total.append(len(array) * (source // 3 != target // 3))
        reduced(reducers, [[np.ones(60000, "float32")]] * 6)
    assert sum(crossing["flat"]) == 3 * sum(crossing["by node"]) == 6 * 240000


def test_all_ranks_of_a_node_lead_some_chunks():
    layout = [[0, 1], [2, 3]]
    network, reducers = by_node_reducers(layout, 4096)
    reduced(reducers, [[np.ones(10000, "float32")]] * 4)
    assert {(source, target) for source, target, _ in network.sent if source // 2 != target // 2} == {
        (0, 2), (2, 0), (1, 3), (3, 1)}


def test_a_rank_of_another_node_that_does_not_come_is_named():
    _, reducers = by_node_reducers([[0, 1], [2, 3]], 1024)
    made = [reducer.start(np.ones(40000, "float32")) for reducer in reducers[:3]]
    while any([one.advance() for one in made]):
        pass
    assert made[2].waits_for() == [3]
    assert made[1].waits_for() == [3]


@pytest.mark.parametrize("hosts, node_ranks, nodes", (
    ("aabb", 0, [[0, 1], [2, 3]]),
    ("abab", 0, [[0, 2], [1, 3]]),        # mpirun --map-by node
    ("aaaa", 0, [[0, 1, 2, 3]]),
    ("aaaa", 2, [[0, 1], [2, 3]]),        # said so: one host counts as two nodes
    ("abab", 2, [[0, 1], [2, 3]]),
    ("aaaa", 1, [[0], [1], [2], [3]]),
    ("aa", 8, [[0, 1]])))                 # fewer than one node
def test_nodes_are_hosts_or_what_was_said(hosts, node_ranks, nodes):
    assert nodes_of(hosts, node_ranks) == nodes


@pytest.mark.parametrize("hosts, node_ranks, told", (
    ("aaaaa", 2, "5 workers do not make nodes of 2"), ("aab", 0, "got a: 2, b: 1")))
def test_unequal_nodes_are_refused(hosts, node_ranks, told):
    with pytest.raises(UsageError, match=told):
        nodes_of(hosts, node_ranks)
