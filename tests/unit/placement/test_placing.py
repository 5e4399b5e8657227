"""Placing: the recorded vectors, what no placement may do whatever it is asked for, and what is refused."""

import gc
import json
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from fleet_mpi.errors import UsageError
from fleet_mpi.placement import (
    Balanced,
    HashName,
    Placement,
    PSDispatcher,
    RoundRobin,
    Shard,
    Variable,
    dispatch,
    hashing,
    place,
    split,
)

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "slicing.json").read_text())["vectors"]
METHODS = ("RoundRobin", "HashName", "Balanced")

MODEL = [("w", (1000, 1000)), ("b", (1000,)), ("table", (301, 100)), ("c", (3, 3))]


def placed(vector):
    """What ``place`` makes of a vector's question."""
    return place([(var["name"], var["shape"]) for var in vector["vars"]], vector["servers"], vector["split_method"],
                 vector["slice_var_up"], vector["min_block_size"], vector["program_random_seed"])


def as_block(shard, suffix, with_server):
    """A shard in the words of the vectors."""
    return {"param": shard.variable, "block_id": shard.block, "block_name": shard.name,
            "grad_block_name": shard.gradient_name(suffix), "offset": shard.offset, "size": shard.size,
            "row_begin": shard.row_begin, "rows": shard.rows, "shape": list(shard.shape),
            "server": shard.server if with_server else None}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_the_blocks_of_a_vector(vector):
    suffix = f".trainer_{vector['trainer_id']}" if vector["sync_mode"] and vector["trainers"] > 1 else ""
    # The original's hash of names depended on the process: such a vector leaves the servers open.
    expected = vector["expect"]["blocks"]
    assert [as_block(shard, suffix, block["server"] is not None)
            for shard, block in zip(placed(vector).shards, expected)] == expected
    assert len(placed(vector).shards) == len(expected)


@pytest.mark.parametrize("vector", [vector for vector in VECTORS if vector["expect"]["per_server"] is not None],
                         ids=lambda vector: vector["id"])
def test_the_order_and_the_servers_of_a_vector(vector):
    made = placed(vector)
    assert list(dict.fromkeys(shard.variable for shard in made.dispatched)) == vector["expect"]["dispatch_order"]
    assert [[shard.name for shard in made.dispatched if shard.server == server] for server in range(made.servers)] \
        == vector["expect"]["per_server"]


shapes = st.lists(st.integers(0, 40), max_size=4).map(tuple)
questions = st.fixed_dictionaries({
    "variables": st.lists(shapes, max_size=12).map(
        lambda found: [Variable(f"v{at}", shape, ("float32", "float64")[at % 2]) for at, shape in enumerate(found)]),
    "servers": st.integers(1, 9), "method": st.sampled_from(METHODS), "slice_up": st.booleans(),
    "min_block_size": st.integers(1, 500), "seed": st.integers(0, 2**32 - 1)})


@hypothesis.given(questions)
def test_shards_tile_every_variable_exactly(question):
    made = place(**question)
    assert tuple(question["variables"]) == made.variables
    assert [name for name, _, _ in made.variables] == list(dict.fromkeys(shard.variable for shard in made.shards))
    for name, shape, _ in made.variables:
        whole = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        shards = made.of_variable(name)
        assert [shard.block for shard in shards] == list(range(len(shards)))
        assert [shard.size for shard in shards] == [np.prod(shard.shape, dtype=int) for shard in shards]
        taken = [whole.reshape(-1)[shard.offset:shard.offset + shard.size].reshape(shard.shape) for shard in shards]
        assert np.array_equal(np.concatenate(taken) if len(taken) > 1 else taken[0], whole)
        if shape:
            assert all(np.array_equal(part, whole[shard.row_begin:shard.row_begin + shard.rows])
                       for part, shard in zip(taken, shards))


@hypothesis.given(questions)
def test_every_shard_is_on_one_server_and_has_a_name_of_its_own(question):
    made = place(**question)
    kept = [shard for server in range(made.servers) for shard in made.of_server(server)]
    assert sorted(kept) == sorted(made.shards) == sorted(made.dispatched)
    assert all(shard in made.of_server(shard.server) for shard in made.shards)
    assert len({shard.name for shard in kept}) == len(kept)


@hypothesis.given(questions)
def test_the_same_question_has_the_same_answer(question):
    assert place(**question).shards == place(**question).shards


@hypothesis.given(questions, st.sets(st.integers(0, 11)))
def test_a_part_of_a_placement_stays_where_it_is(question, chosen):
    made, names = place(**question), {f"v{at}" for at in chosen}
    part = made.only(names)
    assert part.servers == made.servers
    assert part.variables == tuple(variable for variable in made.variables if variable.name in names)
    assert part.shards == tuple(shard for shard in made.shards if shard.variable in names)
    assert part.dispatched == tuple(shard for shard in made.dispatched if shard.variable in names)


@pytest.mark.parametrize("method", METHODS)
def test_many_variables_are_placed_by_compiled_code_as_few_are(method, monkeypatch):
    some = [(7,), (300, 100), (20_000,), (3, 9_000), (0, 4), ()]
    many = [(f"v{at}", some[at % 6]) for at in range(600)]
    plain = place(many, 7, method).shards
    for module in (dispatch, hashing, split):
        monkeypatch.setattr(module, "FEW", 100)
    assert place(many, 7, method).shards == plain
    assert len(plain) == 600 + 100 * (3 - 1) + 100 * (2 - 1) + 100 * (3 - 1)


def test_whole_variables_are_shuffled_as_the_original_did():
    names = [f"v{at}" for at in range(500)]
    pairs = [(name, [name]) for name in names]
    np.random.RandomState(7).shuffle(pairs)
    made = place([(name, (2,)) for name in names], 3, slice_up=False, seed=7)
    assert [shard.name for shard in made.dispatched] == [name for name, _ in pairs] != names
    assert [shard.server for shard in made.dispatched] == [at % 3 for at in range(500)]


def test_numpys_own_random_numbers_go_on_as_if_nothing_had_happened_b36():
    np.random.seed(5)
    expected = np.random.rand(3)
    np.random.seed(5)
    for slice_up in (True, False):
        for method in METHODS:
            place(MODEL, 3, method, slice_up)
    assert np.array_equal(np.random.rand(3), expected)


@pytest.mark.parametrize("is_on", (True, False))
def test_the_garbage_collector_is_left_as_it_was(is_on):
    try:
        gc.enable() if is_on else gc.disable()
        assert place(MODEL, 3).shards and gc.isenabled() == is_on
        with pytest.raises(UsageError):
            place([("w", (-1,))], 3)
        assert gc.isenabled() == is_on
    finally:
        gc.enable()


def test_rows_of_a_table_are_whole_and_all_there_b35():
    assert [(shard.row_begin, shard.rows) for shard in place([("t", (10, 4))], 3, min_block_size=1).shards] \
        == [(0, 4), (4, 4), (8, 2)]


def test_a_variable_is_cut_from_twice_the_least_block_on():
    assert len(place([("b", (16383,))], 4).shards) == 1
    assert len(place([("b", (16384,))], 4).shards) == 2


def test_a_scalar_and_an_empty_variable_are_placed_whole():
    assert place([("s", ()), ("e", (0, 5)), ("n", (5, 0))], 2).shards == (
        Shard("s", 0, "s", 0, 1, 0, 1, (), 0), Shard("e", 0, "e", 0, 0, 0, 0, (0, 5), 1),
        Shard("n", 0, "n", 0, 0, 0, 5, (5, 0), 0))


def test_nothing_to_place_leaves_the_servers_empty():
    made = place([], 2)
    assert (made.shards, made.of_server(1), repr(made)) == ((), (), "Placement(0 variables, 0 shards, 2 servers)")


def test_shapes_may_be_lists_and_numpy_integers():
    made = place([("w", [np.int64(30), 2])], np.int32(2), min_block_size=np.int64(4))
    assert made.shards == place([Variable("w", (30, 2))], 2, min_block_size=4).shards
    assert all(type(number) is int for shard in made.shards for number in (*shard.shape, shard.size, shard.server))


@pytest.mark.parametrize("method", (RoundRobin, HashName, Balanced))
def test_a_method_may_be_a_name_a_class_or_an_instance(method):
    ports = ["a:1", "b:1", "c:1"]
    expected = place(MODEL, 3, method.__name__).shards
    used = method(ports)
    used.dispatch([Variable("before", (5,))])
    assert place(MODEL, 3, method).shards == place(MODEL, ports, method).shards == place(MODEL, 3, used).shards \
        == expected


class LastFirst(PSDispatcher):
    """A method as users write them: by ``dispatch`` only."""

    def dispatch(self, varlist):
        """Backwards in turn, the counter carried over."""
        chosen = []
        for _ in varlist:
            self._step += 1
            chosen.append(self.eps[-self._step % len(self.eps)])
        return chosen


def test_a_method_of_ones_own_is_asked_variable_by_variable():
    made = place(MODEL, ["a:1", "b:1", "c:1"], LastFirst)
    assert [shard.server for shard in made.shards] == [2, 1, 0, 2, 1, 0, 2, 1]


def test_a_subclass_with_its_own_dispatch_is_asked_not_its_parent():
    class First(RoundRobin):
        def dispatch(self, varlist):
            assert all(var.shape and var.dtype == "float32" for var in varlist)
            return [self.eps[0] for _ in varlist]
    assert {shard.server for shard in place(MODEL, 3, First).shards} == {0}


class Nowhere(PSDispatcher):
    """Names a server that is not there."""

    def dispatch(self, varlist):
        """One endpoint, of nobody."""
        return ["nobody:1"]


@pytest.mark.parametrize("arguments, said", (
    (dict(servers=0), "servers must be a whole number of at least 1, got 0"),
    (dict(servers=2.0), "servers must be a whole number of at least 1, got 2.0"),
    (dict(servers=True), "servers must be a whole number of at least 1, got True"),
    (dict(servers=[]), "expected the endpoints of one server or more, all different, got []"),
    (dict(servers=["a:1", "a:1"]), "all different, got ['a:1', 'a:1']"),
    (dict(min_block_size=0), "min_block_size must be a whole number of at least 1, got 0"),
    (dict(min_block_size="8192"), "min_block_size must be a whole number of at least 1, got '8192'"),
    (dict(method="RoundRobbin"), "split method 'RoundRobbin' is unknown; did you mean 'RoundRobin'?"),
    (dict(method=3), "expected one of RoundRobin, HashName, Balanced or a subclass of PSDispatcher, got 3"),
    (dict(method=dict), "or a subclass of PSDispatcher, got <class 'dict'>"),
    (dict(method=RoundRobin(["a:1", "b:1"])), "RoundRobin was made for 2 servers, there are 3"),
    (dict(method=Nowhere), "dispatch of the 3 blocks of 'w.block0' must return as many of"),
    (dict(variables=[("w", (2,)), ("v", (2,)), ("w", (3,))]), "two variables are called 'w'"),
    (dict(variables=[("w", (-1, 5))]), "variable 'w' has shape [-1, 5]; what servers keep needs a size"),
    (dict(variables=[("w", (1 << 40, 1 << 40))]), "variable 'w' has shape [1099511627776, 1099511627776]: more than"),
    (dict(variables=[("w", (2.5,))]),
     "expected a variable as (name, shape) or (name, shape, dtype), got ('w', (2.5,))"),
    (dict(variables=["w"]), "expected a variable as (name, shape) or (name, shape, dtype), got 'w'"),
    (dict(variables=[(3, (2,))]), "expected the name of a variable first, got 3"),
    (dict(variables=[("w", (2,), "float31")]), "dtype 'float31' is not one that numpy knows"),
    (dict(variables=[("w", (20_000,)), ("w.block1", (5,))]),
     "'w.block1' is a variable, and a block of the variable 'w'"),
    (dict(slice_up=False, seed=-1), "seed must be a whole number of at least 0, got -1"),
    (dict(slice_up=False, seed=None), "seed must be a whole number of at least 0, got None"),
    (dict(slice_up=False, seed=1 << 32), "seed must be below 2**32"),
), ids=lambda value: value if isinstance(value, str) else "")
def test_what_cannot_be_placed_is_a_sentence(arguments, said):
    with pytest.raises(UsageError) as raised:
        place(**{"variables": MODEL, "servers": 3, **arguments})
    assert said in str(raised.value)


def test_a_placement_says_what_it_does_not_have():
    made = place(MODEL, 3)
    assert isinstance(made, Placement)
    with pytest.raises(UsageError, match="no server 3; there are 3, counted from 0"):
        made.of_server(3)
    with pytest.raises(UsageError, match="no variable 'v' among the 4 that were placed"):
        made.of_variable("v")
