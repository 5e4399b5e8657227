"""The op that pulls rows: shapes, padding, sequences, devices, and a scope without servers."""

import numpy as np
import pytest
from checking import StandInPlace

from fleet_mpi import distributed_ops  # noqa: F401  (enters the op)
from fleet_mpi import fluid, sessions
from fleet_mpi.errors import ProgramError
from fleet_mpi.program.executor import Executor
from fleet_mpi.program.scope import Scope, create_lod_tensor
from fleet_mpi.transpile.lookups import replace_lookups

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
