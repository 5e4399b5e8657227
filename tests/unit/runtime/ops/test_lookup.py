"""The op that pulls rows: shapes, padding, sequences, devices, and a scope without servers."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.arrays import DistantTable
from fleet_mpi.errors import ProgramError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope, create_lod_tensor
from fleet_mpi.runtime import sessions
from fleet_mpi.transpile.lookups import replace_lookups
from tests.unit.program.ops.checking import StandInPlace

TABLE = np.arange(30, dtype="float32").reshape(10, 3) + 1


class Kept:
    """A session with one table, of number 4."""

    table_numbers = {"table": 4}

    def __init__(self):
        self.client, self.asked = self, []

    def pull_rows(self, wanted, into):
        """Rows of the table, one array behind the other."""
        self.asked.append({number: ids.tolist() for number, ids in wanted.items()})
        start = 0
        for out in into[4]:
            count = out.size // 3
            out[...] = TABLE[wanted[4][start:start + count]].reshape(out.shape)
            start += count


def run(fetches, place=None, **feeds):
    """Run the default program with its lookups replaced; (values, what was asked)."""
    replace_lookups(fluid.default_main_program(), ["table"])
    scope = Scope()
    kept = scope.var(sessions.SESSION).value = Kept()
    return Executor(place).run(feed=feeds, fetch_list=fetches, scope=scope, return_numpy=False), kept.asked


@pytest.mark.parametrize("place", (None, StandInPlace()), ids=("host", "device"))
def test_both_forms_of_ids_and_rows_of_padding(place):
    old, new = fluid.data("old", [2, 1], dtype="int64"), fluid.data("new", [1, 2], dtype="int32")
    rows = [fluid.layers.embedding(old, [10, 3], is_sparse=True, param_attr="table"),
            fluid.embedding(new, [10, 3], is_sparse=True, param_attr="table", padding_idx=9)]
    (first, second), asked = run(rows, place, old=np.array([[1], [9]]), new=np.array([[9, 1]], "int32"))
    np.testing.assert_array_equal(np.array(first), TABLE[[1, 9]])
    np.testing.assert_array_equal(np.array(second), [[[0, 0, 0], TABLE[1]]])
    assert asked == [{4: [1, 9, 9, 1]}]


def test_sequences_of_ids_are_sequences_of_rows():
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    pooled = fluid.layers.sequence_pool(
        fluid.layers.embedding(words, [10, 3], is_sparse=True, param_attr="table"), "sum")
    (found,), _ = run([pooled], words=create_lod_tensor(np.array([[1], [2], [5]]), [[2, 1]], fluid.CPUPlace()))
    np.testing.assert_array_equal(np.array(found), [TABLE[1] + TABLE[2], TABLE[5]])


def test_a_scope_without_servers_is_said():
    ids = fluid.data("ids", [2], dtype="int64")
    rows = fluid.embedding(ids, [10, 3], is_sparse=True, param_attr="table")
    replace_lookups(fluid.default_main_program(), ["table"])
    with pytest.raises(ProgramError, match="not connected to servers"):
        Executor().run(feed={"ids": np.array([1, 2])}, fetch_list=[rows], scope=Scope())


def test_the_printed_program_names_tables_and_versions():
    ids = fluid.data("ids", [2], dtype="int64")
    fluid.embedding(ids, [10, 3], is_sparse=True, param_attr="table")
    replace_lookups(fluid.default_main_program(), ["table"])
    assert ("distributed_lookup_table(Ids=[ids]) {lookup_table_version: ['lookup_table_v2'], op_role: 0, "
            "padding_idx: [-1], table_names: ['table']}") in str(fluid.default_main_program())


@pytest.mark.parametrize("place", (None, StandInPlace()), ids=("host", "device"))
@pytest.mark.parametrize("look_up", (fluid.layers.embedding, fluid.contrib.layers.sparse_embedding))
def test_a_program_that_was_not_rewritten_finds_the_rows_through_its_scope(look_up, place):
    ids, scope = fluid.data("ids", [3, 1], dtype="int64"), Scope()
    rows = look_up(ids, [10, 3], param_attr="table", padding_idx=4)
    Executor(place).run(fluid.default_startup_program(), scope=scope)

    def fetch(ids, out):
        out[...] = TABLE[ids]
    scope.var("table").put(None)
    scope.var("table").value = DistantTable((10, 3), "float32", fetch)
    found, = Executor(place).run(feed={"ids": np.array([[9], [4], [1]])}, fetch_list=[rows], scope=scope)
    np.testing.assert_array_equal(found, [TABLE[9], [0, 0, 0], TABLE[1]])


def trained(servers):
    """Losses of some steps, then of a test program, with tables by rows, or in one process; what the scope has."""
    main, startup, scope = fluid.Program(), fluid.Program(), Scope()
    main.random_seed = startup.random_seed = 3
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        slots = [fluid.layers.data(f"slot{i}", [1], dtype="int64") for i in range(3)]
        rows = [fluid.layers.embedding(one, [4000, 5], is_sparse=True, is_distributed=i == 2,
                                       param_attr="own" if i == 2 else "shared") for i, one in enumerate(slots)]
        target = fluid.layers.data("target", [1])
        guess = fluid.layers.fc(fluid.layers.concat(rows, axis=1), 1)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(guess, target))
        tested = main.clone(for_test=True)
        fluid.optimizer.Adam(0.05, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.5)).minimize(loss)
    if servers:
        transpiler = fluid.DistributeTranspiler()
        transpiler.transpile(0, main, ",".join(f"127.0.0.1:{i}" for i in range(servers)), 1, startup_program=startup)
        main = transpiler.get_trainer_program()
    exe, rng, losses = Executor(), np.random.default_rng(0), []
    exe.run(startup, scope=scope)
    for program in (main, main, main, tested):
        feed = {f"slot{i}": rng.integers(0, 4000, (8, 1)) for i in range(3)}
        losses += exe.run(program, {**feed, "target": np.ones((8, 1), "float32")}, [loss], scope=scope)
    return losses, scope


@pytest.mark.parametrize("servers", (1, 3))
def test_a_transpiled_program_and_its_test_program_give_the_losses_of_one_process_without_the_tables(servers):
    losses, scope = trained(servers)
    np.testing.assert_array_equal(losses, trained(0)[0])
    assert scope.array("shared") is None and scope.array("own") is None
    assert not [name for name in scope.local_var_names() if name.startswith(("shared_", "own_"))]
