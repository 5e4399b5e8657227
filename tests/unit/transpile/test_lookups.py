"""Lookups of tables that servers keep: how few pulls they become, and where these stand."""

import numpy as np
from hypothesis import given, settings, strategies as st

from fleet_mpi import fluid
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.graph.program import Program
from fleet_mpi.runtime import sessions
from fleet_mpi.transpile.lookups import replace_lookups

HEIGHT, WIDTH, IDS = 20, 3, np.array([3, 0, 19, 3])


class KeptElsewhere:
    """A session whose tables are arrays of this process; counts the pulls."""

    def __init__(self, **tables):
        self.table_numbers = {name: number for number, name in enumerate(tables)}
        self.tables, self.client, self.pulls = list(tables.values()), self, 0

    def pull_rows(self, wanted, into):
        """Rows, into the arrays given."""
        self.pulls += 1
        for number, ids in wanted.items():
            rows = np.split(self.tables[number][ids], np.cumsum([out.size // WIDTH for out in into[number]])[:-1])
            for out, part in zip(into[number], rows, strict=True):
                out[...] = part.reshape(out.shape)


def tables():
    """Two tables."""
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=(HEIGHT, WIDTH)).astype("float32") for name in ("big", "small")}


def types(program):
    """The op types of block 0."""
    return [op.type for op in program.global_block().ops]


def test_lookups_whose_ids_are_fed_become_one_pull():
    ids = [fluid.layers.data(f"ids{i}", [1], dtype="int64") for i in range(3)]
    rows = [fluid.layers.embedding(one, [HEIGHT, WIDTH], is_sparse=True, param_attr="big" if i else "small")
            for i, one in enumerate(ids)]
    fluid.layers.concat(rows, axis=1)
    program = fluid.default_main_program()
    replace_lookups(program, ["big", "small"])
    assert types(program) == ["distributed_lookup_table", "concat"]
    pull = program.global_block().ops[0]
    assert pull.input("Ids") == ["ids0", "ids1", "ids2"]
    assert pull.output("Outputs") == [one.name for one in rows]
    assert pull.attr("table_names") == ["small", "big", "big"]


def test_b14_a_distributed_table_is_replaced_too_and_other_lookups_stay():
    ids = fluid.layers.data("ids", [1], dtype="int64")
    for name, distributed in (("big", True), ("small", False)):
        fluid.layers.embedding(ids, [HEIGHT, WIDTH], is_sparse=True, is_distributed=distributed, param_attr=name)
    replace_lookups(fluid.default_main_program(), ["big"])
    assert sorted(types(fluid.default_main_program())) == ["distributed_lookup_table", "lookup_table"]


def test_ids_that_are_computed_from_rows_need_a_second_pull():
    ids = fluid.data("ids", [4], dtype="int64")
    first = fluid.embedding(ids, [HEIGHT, WIDTH], is_sparse=True, param_attr="big")
    best = fluid.layers.argmax(first, axis=1)
    fluid.embedding(best, [HEIGHT, WIDTH], is_sparse=True, param_attr="big")
    fluid.embedding(ids, [HEIGHT, WIDTH], is_sparse=True, param_attr="small")
    program = fluid.default_main_program()
    replace_lookups(program, ["big", "small"])
    assert [kind for kind in types(program) if kind != "assign"] == [
        "distributed_lookup_table", "arg_max", "distributed_lookup_table"]


def test_a_lookup_in_a_loop_is_a_pull_of_every_turn():
    ids = fluid.data("ids", [4], dtype="int64")
    turn, last = fluid.layers.fill_constant([1], "int64", 0), fluid.layers.fill_constant([1], "int64", 3)
    total = fluid.layers.fill_constant([4, WIDTH], "float32", 0.0)
    goes_on = fluid.layers.less_than(turn, last)
    loop = fluid.layers.While(goes_on)
    with loop.block():
        rows = fluid.embedding(ids, [HEIGHT, WIDTH], is_sparse=True, param_attr="big")
        fluid.layers.assign(fluid.layers.elementwise_add(total, rows), total)
        fluid.layers.increment(turn, 1)
        fluid.layers.less_than(turn, last, cond=goes_on)
    replace_lookups(fluid.default_main_program(), ["big"])
    kept, scope = tables(), Scope()
    session = scope.var(sessions.SESSION).value = KeptElsewhere(**kept)
    found, = Executor().run(feed={"ids": IDS}, fetch_list=[total], scope=scope)
    np.testing.assert_allclose(found, 3 * kept["big"][IDS], rtol=1e-6)
    assert session.pulls == 3


def test_the_gradient_needs_no_table():
    ids = fluid.data("ids", [4], dtype="int64")
    rows = fluid.embedding(ids, [HEIGHT, WIDTH], is_sparse=True, param_attr="big", padding_idx=0)
    loss = fluid.layers.reduce_sum(fluid.layers.square(rows))
    fluid.backward.append_backward(loss)
    replace_lookups(fluid.default_main_program(), ["big"])
    kept, scope = tables(), Scope()
    scope.var(sessions.SESSION).value = KeptElsewhere(**kept)
    found, = Executor().run(feed={"ids": IDS}, fetch_list=["big@GRAD"], scope=scope, return_numpy=False)
    expected = 2 * kept["big"][IDS]
    expected[1] = 0
    assert found.height == HEIGHT and found.ids.tolist() == IDS.tolist()
    np.testing.assert_allclose(found.values, expected, rtol=1e-6)


def test_a_growing_table_is_looked_up_by_id_and_so_is_its_gradient():
    ids = fluid.data("ids", [4, 1], dtype="int64")
    rows = fluid.contrib.layers.sparse_embedding(ids, [HEIGHT, WIDTH], param_attr="big", padding_idx=0)
    fluid.backward.append_backward(fluid.layers.reduce_sum(rows))
    replace_lookups(fluid.default_main_program(), ["big"])
    kept, scope = tables(), Scope()
    scope.var(sessions.SESSION).value = KeptElsewhere(**kept)
    values, grad = Executor().run(feed={"ids": IDS.reshape(4, 1)}, fetch_list=[rows, "big@GRAD"], scope=scope,
                                  return_numpy=False)
    there = np.array([[1], [0], [1], [1]], "float32")
    np.testing.assert_array_equal(np.array(values), kept["big"][IDS] * there)
    assert grad.ids.tolist() == IDS.tolist()
    np.testing.assert_array_equal(grad.values, there * np.ones((4, WIDTH)))


IDS_NAMES, ROWS_NAMES = ["ids", "i0", "i1"], ["r0", "r1", "r2"]
OPS = st.one_of(
    st.tuples(st.just("look up"), st.sampled_from(["big", "small"]), st.sampled_from(IDS_NAMES),
              st.sampled_from(ROWS_NAMES)),
    st.tuples(st.just("move ids"), st.sampled_from(IDS_NAMES), st.sampled_from(IDS_NAMES[1:])),
    st.tuples(st.just("add"), st.sampled_from(ROWS_NAMES), st.sampled_from(ROWS_NAMES), st.sampled_from(ROWS_NAMES)))


def built(steps):
    """A program of lookups among ops that write over ids and rows."""
    program = Program()
    block = program.global_block()
    for name in ("big", "small"):
        block.create_var(name=name, shape=[HEIGHT, WIDTH], dtype="float32", persistable=True)
    block.create_var(name="ids", shape=[4], dtype="int64", is_data=True)
    for name in IDS_NAMES[1:]:
        block.append_op("scale", {"X": ["ids"]}, {"Out": [name]}, {"scale": 1.0})
    for name in ROWS_NAMES:
        block.append_op("fill_constant", {}, {"Out": [name]}, {"shape": [4, WIDTH], "value": 1.0, "dtype": "float32"})
    for kind, *names in steps:
        if kind == "look up":
            block.append_op("lookup_table_v2", {"W": [names[0]], "Ids": [names[1]]}, {"Out": [names[2]]})
        elif kind == "add":
            block.append_op("elementwise_add", {"X": [names[0]], "Y": [names[1]]}, {"Out": [names[2]]})
        else:
            # To the next id, and back from the last: 19 - id stays within the table.
            block.append_op("scale", {"X": [names[0]]}, {"Out": [names[1]]}, {"scale": -1.0, "bias": 19.0})
    return program


@settings(max_examples=80)
@given(st.lists(OPS, max_size=12))
def test_the_rewritten_program_computes_the_same(steps):
    kept, here, elsewhere = tables(), Scope(), Scope()
    for name, array in kept.items():
        here.var(name).put(array)
    session = elsewhere.var(sessions.SESSION).value = KeptElsewhere(**kept)
    names = [*IDS_NAMES[1:], *ROWS_NAMES]
    expected = Executor().run(built(steps), {"ids": IDS}, names, scope=here)
    program = built(steps)
    replace_lookups(program, kept)
    lookups = sum(kind == "look up" for kind, *_ in steps)
    assert "lookup_table_v2" not in types(program)
    found = Executor().run(program, {"ids": IDS}, names, scope=elsewhere)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert session.pulls <= lookups


def test_losses_that_choose_rows_keep_them_for_their_gradients():
    x, label = fluid.layers.data("x", [WIDTH]), fluid.layers.data("label", [1], dtype="int64")
    costs = [fluid.layers.nce(x, label, HEIGHT, is_sparse=True, param_attr="big"),
             fluid.layers.hsigmoid(x, label, HEIGHT, is_sparse=True, param_attr="small")]
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.sum(costs)))
    program = fluid.default_main_program()
    replace_lookups(program, ["big", "small"])
    by_type = {op.type: op for op in program.global_block().ops}
    for kind, weight, chosen in (("nce", "Weight", 11), ("hierarchical_sigmoid", "W", 5)):
        forward, backward = by_type[kind], by_type[kind + "_grad"]
        assert forward.input(weight) and not backward.input(weight)
        assert forward.output("Rows") == backward.input("Rows")
        assert program.global_block().var(forward.output("Rows")[0]).shape == (-1, chosen, WIDTH)
