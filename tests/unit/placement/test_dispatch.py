"""The split methods as the original's classes: ``eps``, ``reset``, ``dispatch``."""

from types import SimpleNamespace

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from fleet_mpi import fluid
from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.placement import Balanced, HashName, PSDispatcher, RoundRobin, dispatch, place
from fleet_mpi.placement.hashing import fnv1a

PORTS = ["a:6174", "b:6174", "c:6174"]


def named(*names):
    """Things with a name and nothing else, as dispatch gets them."""
    return [SimpleNamespace(name=name) for name in names]


def test_round_robin_goes_on_where_it_was_until_it_is_reset():
    method = RoundRobin(PORTS)
    assert method.eps == PORTS
    assert method.dispatch(named("v", "w")) == ["a:6174", "b:6174"]
    assert method.dispatch(named("x", "y")) == ["c:6174", "a:6174"]
    method.reset()
    assert method.dispatch(named("z")) == ["a:6174"]


def test_hash_name_reads_names_and_keeps_nothing_b1():
    method = HashName(PORTS)
    expected = [PORTS[fnv1a(name) % 3] for name in ("w", "w.block1", "b")]
    assert method.dispatch(named("w", "w.block1", "b")) == expected
    assert method.dispatch(named("b")) == expected[2:]


def test_hash_name_takes_a_programs_variables():
    x = fluid.layers.data(name="x", shape=[13])
    fluid.layers.fc(x, 2)
    parameters = fluid.default_main_program().global_block().all_parameters()
    assert HashName(PORTS).dispatch(parameters) == [PORTS[fnv1a(name) % 3] for name in ("fc_0.w_0", "fc_0.b_0")]


def test_hash_name_may_put_blocks_of_a_variable_on_one_server_b2():
    shards = place([("w", (100, 10))], 7, "HashName", min_block_size=1).shards
    assert len(shards) == 7 and len({shard.server for shard in shards}) < 7
    assert [shard.server for shard in shards] == [fnv1a(f"w.block{block}") % 7 for block in range(7)]


def test_where_a_block_is_by_name_does_not_depend_on_the_others():
    few, many = (place([(f"v{at}", (10,)) for at in range(count)], 5, "HashName").shards for count in (3, 30))
    assert few == many[:3]


def test_balanced_gives_the_largest_first_to_who_has_least():
    sizes = (5, 7, 1, 7, 3, 2)
    shards = place([(f"v{at}", (size,)) for at, size in enumerate(sizes)], 3, "Balanced").shards
    # 7 and 7 to servers 0 and 1 in their order, 5 to 2, 3 to 2 (8 now), 2 to 0, 1 to 1.
    assert [shard.server for shard in shards] == [2, 0, 1, 1, 2, 0]


def test_balanced_counts_bytes_not_elements():
    shards = place([("a", (10,), "float32"), ("b", (6,), "float64"), ("c", (9,), "float32")], 2, "Balanced").shards
    assert [shard.server for shard in shards] == [1, 0, 1]


def test_balanced_goes_on_with_what_servers_have_until_it_is_reset():
    method = Balanced(PORTS)
    assert method.dispatch([SimpleNamespace(name="v", shape=(8,), dtype="float32")]) == ["a:6174"]
    assert method.dispatch([SimpleNamespace(name="w", shape=[2]), SimpleNamespace(name="x", shape=[3])]) \
        == ["c:6174", "b:6174"]
    method.reset()
    assert method.dispatch([SimpleNamespace(name="z", shape=(1,))]) == ["a:6174"]


@hypothesis.given(st.lists(st.integers(0, 10**6), max_size=60), st.integers(1, 12), st.booleans())
def test_no_server_is_ahead_by_more_than_one_block(sizes, servers, is_compiled):
    sizes, loads = np.array(sizes, np.int64), np.zeros(servers, np.int64)
    order = np.argsort(-sizes, kind="stable")
    balance = dispatch.compiled_balance() if is_compiled else dispatch.balance_many
    given_to = balance(order, sizes, loads)
    assert np.array_equal(np.bincount(given_to, weights=sizes, minlength=servers), loads)
    assert loads.max() - loads.min() <= sizes.max(initial=0)


@hypothesis.given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 12))
def test_compiled_balancing_is_the_plain_one(sizes, servers):
    sizes = np.array(sizes, np.int64)
    order = np.argsort(-sizes, kind="stable")
    plain, compiled = (balance(order, sizes, np.zeros(servers, np.int64))
                       for balance in (dispatch.balance_many, dispatch.compiled_balance()))
    assert np.array_equal(plain, compiled)


def test_fluid_has_the_same_classes():
    transpiler = fluid.transpiler
    assert transpiler.RoundRobin is transpiler.ps_dispatcher.RoundRobin is fluid.RoundRobin is RoundRobin
    assert transpiler.HashName is transpiler.ps_dispatcher.HashName is fluid.HashName is HashName
    assert transpiler.ps_dispatcher.PSDispatcher is PSDispatcher


def test_no_endpoints_no_shape_and_no_dispatch_are_sentences():
    with pytest.raises(UsageError, match="HashName: expected the endpoints of one server or more, got none"):
        HashName([])
    with pytest.raises(UsageError, match="has no shape, so its bytes cannot be counted"):
        Balanced(PORTS).dispatch(named("w"))
    with pytest.raises(NotBuilt, match=r"PSDispatcher: define dispatch\(varlist\)"):
        PSDispatcher(PORTS).dispatch(named("w"))


def test_no_method_given_is_round_robin():
    assert type(dispatch.dispatcher(None, PORTS)) is RoundRobin
