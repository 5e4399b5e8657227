"""Ops of program/ops/sparse_table.py: tables that take any id."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.kernels.reference import slots
from fleet_mpi.program.build.initializers import Constant, Normal, NumpyArray, Uniform
from fleet_mpi.program.build.param_attr import ParamAttr
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.program import Program, program_guard
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.layers.embedding import embedding, sparse_embedding
from fleet_mpi.program.layers.math import elementwise_mul, sums
from fleet_mpi.program.layers.reduction import mean
from fleet_mpi.program.optimizers.plain import SGD, Adagrad, Adam
from tests.unit.program.ops.checking import Case, StandInPlace, checks

HUGE = 10 ** 10


def state(rows, known=()):
    keys, index = np.full(rows, slots.FREE, np.int64), np.full(slots.index_size(rows), -1, np.int64)
    slots.find_slots(np.array(known, np.int64), keys, index, np.zeros(len(known), np.int64), True)
    return {"Keys": keys, "Index": index}


TABLE = np.arange(8.0).reshape(4, 2)
CASES = [
    Case("sparse_table_lookup", {"W": TABLE, "Ids": np.array([[HUGE], [7], [-3]]), **state(4, [7, HUGE])},
         {"init_from": 0.5}, {"Out": np.array([[2, 3], [0, 1], [0.5, 0.5]]), "Slots": np.array([1, 0, 2])},
         persistable="W Keys Index", outputs={"Out": [0], "Slots": [0], "KeysOut": [0], "IndexOut": [0]}),
    Case("sparse_table_lookup", {"W": TABLE, "Ids": np.array([[7], [5]]), **state(4, [7])}, {"is_test": True},
         {"Out": np.array([[0, 1], [0, 0]])}, persistable="W Keys Index", note="test",
         outputs={"Out": [0], "Slots": [0], "KeysOut": [0], "IndexOut": [0]}),
]

test_forward, test_device = checks(CASES)


class Job:
    """A table, a loss and an optimizer; feeds and results by id."""

    def __init__(self, optimizer, rows=2, initializer=None, padding_idx=None, seed=3, lookups=1, width=3):
        self.main, self.startup, self.scope = Program(), Program(), Scope()
        self.main.random_seed = self.startup.random_seed = seed
        with program_guard(self.main, self.startup), unique_name.guard():
            attr = ParamAttr(name="table", initializer=initializer or Uniform(-1.0, 1.0))
            fed = [data(f"ids{i}", [1], dtype="int64") for i in range(lookups)]
            self.outs = [sparse_embedding(one, [rows, width], padding_idx, param_attr=attr) for one in fed]
            total = sums(self.outs)
            self.loss = mean(elementwise_mul(total, total))
            self.test = self.main.clone(for_test=True)
            optimizer.minimize(self.loss)
        self.executor = Executor()
        self.executor.run(self.startup, scope=self.scope)

    def run(self, *batches, program=None):
        feed = {f"ids{i}": np.array(batch, np.int64).reshape(-1, 1) for i, batch in enumerate(batches)}
        return self.executor.run(program or self.main, feed, self.outs, scope=self.scope)

    def rows(self):
        """{id: row} of everything in the table."""
        keys, index, table = (np.array(self.scope.find_var("table" + end).get_tensor())
                              for end in ("@KEYS", "@INDEX", ""))
        return {int(key): table[i].copy() for i, key in enumerate(keys[:index[-1] + 1])}


class DenseTwin:
    """The same training over a plain array with a row for each id that occurs."""

    def __init__(self, optimizer, rows):
        self.ids = list(rows)
        self.main, self.startup, self.scope = Program(), Program(), Scope()
        with program_guard(self.main, self.startup):
            attr = ParamAttr(name="table", initializer=NumpyArray(np.array(list(rows.values()))))
            out = embedding(data("ids0", [1], dtype="int64"), [len(rows), 3], is_sparse=True, param_attr=attr)
            optimizer.minimize(mean(elementwise_mul(out, out)))
        self.executor = Executor()
        self.executor.run(self.startup, scope=self.scope)

    def run(self, batch):
        feed = {"ids0": np.array([[self.ids.index(one)] for one in batch])}
        self.executor.run(self.main, feed, [], scope=self.scope)

    def rows(self):
        return dict(zip(self.ids, np.array(self.scope.find_var("table").get_tensor())))


BATCHES = [[5, HUGE, 5], [-9, 2 ** 62, 3, HUGE], [1, 2, 3, 4], [5, 6, 7, 8, 9, 10], [HUGE, -9]]


@pytest.mark.parametrize("optimizer", [lambda: SGD(0.5), lambda: Adam(0.1, lazy_mode=True), lambda: Adam(0.1),
                                       lambda: Adagrad(0.3, initial_accumulator_value=0.1)])
def test_training_a_growing_table_is_training_a_plain_one(optimizer):
    first = Job(SGD(0.0))
    for batch in BATCHES:
        first.run(batch)
    grown, plain = Job(optimizer()), DenseTwin(optimizer(), first.rows())
    for batch in BATCHES:
        grown.run(batch)
        plain.run(batch)
    assert grown.rows().keys() == plain.rows().keys()
    for key, row in plain.rows().items():
        np.testing.assert_array_equal(grown.rows()[key], row, err_msg=str(key))


def test_first_values_do_not_depend_on_the_order_of_ids_or_the_size_of_the_table():
    one, other = Job(SGD(0.0), initializer=Normal(0.0, 1.0)), Job(SGD(0.0), rows=64, initializer=Normal(0.0, 1.0))
    one.run([1, 2, HUGE])
    other.run([HUGE, 7, 2])
    other.run([1])
    for key in (1, 2, HUGE):
        np.testing.assert_array_equal(one.rows()[key], other.rows()[key])
    assert len({tuple(row) for row in other.rows().values()}) == 4
    assert not np.array_equal(Job(SGD(0.0), seed=4).run([1])[0], Job(SGD(0.0), seed=3).run([1])[0])


def test_two_lookups_of_one_table_find_the_same_rows():
    job = Job(SGD(0.0), lookups=2)
    for batch in ([1, 2, 3], [4, 5, 6], [7, 8, 9]):
        one, other = job.run(batch, batch[::-1])
        np.testing.assert_array_equal(one, other[::-1])
    assert sorted(job.rows()) == list(range(1, 10))


def test_testing_makes_no_rows():
    job = Job(SGD(0.1), initializer=Constant(0.25))
    job.run([1])
    before = job.rows()
    out, = job.run([1, 99], program=job.test)
    np.testing.assert_array_equal(out, [before[1], [0, 0, 0]])
    assert job.rows().keys() == {1}


def test_padding_is_zero_and_never_trained():
    job = Job(SGD(0.5), padding_idx=0, initializer=Constant(1.0))
    out, = job.run([0, 1])
    assert (out == [[0, 0, 0], [1, 1, 1]]).all()
    job.run([0, 0, 0])
    assert (job.run([0])[0] == 0).all() and (job.rows()[1] != 1).all()


def test_a_table_written_to_other_arrays_goes_on_there():
    """What a checkpoint restores: all persistable variables, by value."""
    whole, first, second = Job(Adam(0.1)), Job(Adam(0.1)), Job(Adam(0.1))
    for batch in BATCHES:
        whole.run(batch)
    for batch in BATCHES[:2]:
        first.run(batch)
    second.run([77])
    for var in first.main.list_vars():
        if var.persistable:
            second.scope.var(var.name).get_tensor().set(np.array(first.scope.find_var(var.name).get_tensor()))
    for batch in BATCHES[2:]:
        second.run(batch)
    for key, row in whole.rows().items():
        np.testing.assert_array_equal(second.rows()[key], row)


def test_the_startup_program_empties_the_table():
    job = Job(SGD(0.1))
    job.run([1, 2, 3, 4])
    job.executor.run(job.startup, scope=job.scope)
    assert job.rows() == {}
    job.run([9])
    assert list(job.rows()) == [9]


def test_a_device_finds_the_same_rows():
    one, other = Job(SGD(0.5)), Job(SGD(0.5))
    other.executor = Executor(StandInPlace())
    for batch in BATCHES:
        np.testing.assert_array_equal(one.run(batch)[0], other.run(batch)[0])


def test_an_initializer_that_needs_the_whole_table_is_refused():
    with pytest.raises(UsageError, match="one row at a time"):
        Job(SGD(0.1), initializer=NumpyArray(np.zeros((2, 3))))
