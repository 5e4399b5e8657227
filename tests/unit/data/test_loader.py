"""fleet_mpi/data/loader.py."""

import numpy as np
import pytest

from fleet_mpi.data.loader import DataLoader, PyReader, py_reader, read_file
from fleet_mpi.errors import EndOfData, UsageError
from fleet_mpi.program.executor import Executor


@pytest.fixture
def program(programs):
    return programs[0]


def data(program, name="x", **fields):
    return program.global_block().create_var(name=name, shape=[-1, 2], is_data=True, stop_gradient=True, **fields)


def samples(count=5):
    return lambda: ((np.full(2, i, "float32"),) for i in range(count))


def doubled(program, x):
    out = program.global_block().create_var(name="out")
    program.global_block().append_op("elementwise_add", {"X": x, "Y": x}, {"Out": out})
    return out


def test_an_iterable_loader_yields_feeds_that_the_executor_takes(program):
    x = data(program)
    out = doubled(program, x)
    loader = DataLoader.from_generator(feed_list=[x], capacity=2, iterable=True)
    loader.set_sample_generator(samples(), batch_size=2, drop_last=False)
    sums = [Executor().run(program, feed=feed, fetch_list=[out])[0].sum() for feed in loader()]
    assert sums == [4.0, 20.0, 16.0]


def test_a_non_iterable_loader_feeds_by_itself_until_the_end_of_data(program):
    x = data(program)
    out = doubled(program, x)
    loader = PyReader(feed_list=[x], capacity=4, iterable=False)
    assert loader.set_sample_generator(samples(4), batch_size=2) is loader
    executor = Executor()
    for _ in range(2):
        loader.start()
        seen = []
        with pytest.raises(EndOfData):
            while True:
                seen.append(executor.run(program, fetch_list=[out])[0].sum())
        loader.reset()
        assert seen == [4.0, 20.0]


def test_running_before_start_is_a_sentence(program):
    x = data(program)
    out = doubled(program, x)
    PyReader(feed_list=[x], capacity=4, iterable=False).set_sample_generator(samples(4), batch_size=2)
    with pytest.raises(UsageError, match="start"):
        Executor().run(program, fetch_list=[out])


def test_an_error_in_the_generator_reaches_the_trainer_after_the_batches_before_it(program):
    def broken():
        yield (np.zeros(2, "float32"),)
        raise RuntimeError("disk gone")
    loader = DataLoader.from_generator(feed_list=[data(program)], capacity=2)
    loader.set_sample_generator(broken, batch_size=1)
    batches = iter(loader)
    next(batches)
    with pytest.raises(RuntimeError, match="disk gone"):
        next(batches)


def test_py_reader_makes_its_variables(program):
    reader = py_reader(capacity=4, shapes=[[-1, 2], [-1, 1]], dtypes=["float32", "int64"])
    x, label = read_file(reader)
    assert x.shape == (-1, 2) and label.dtype == "int64"
    reader.decorate_paddle_reader(lambda: iter([[(np.ones(2), 1), (np.ones(2), 0)]]))
    reader.start()
    out = doubled(program, x)
    assert Executor().run(program, fetch_list=[out])[0].tolist() == [[2, 2], [2, 2]]


def test_batches_may_come_as_lists_of_arrays(program):
    loader = DataLoader.from_generator(feed_list=[data(program)], capacity=2, return_list=True)
    loader.set_batch_generator(lambda: iter([[np.ones((3, 2))]]))
    assert [batch[0].shape for batch in loader()] == [(3, 2)]


def test_a_loader_without_a_generator_is_refused(program):
    with pytest.raises(UsageError, match="generator"):
        next(iter(DataLoader.from_generator(feed_list=[data(program)], capacity=2)))
