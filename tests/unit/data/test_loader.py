"""fleet_mpi/data/loader.py."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from fleet_mpi.data.data_loader import DataLoader
from fleet_mpi.data.loader import PyReader, py_reader, read_file
from fleet_mpi.errors import EndOfData, UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Tensor


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


def test_an_iterable_loader_gives_lod_tensors_by_name(program):
    x, words = data(program), data(program, "words", dtype="int64", lod_level=1)
    loader = DataLoader.from_generator(feed_list=[x, words], capacity=2)
    loader.set_sample_list_generator(lambda: iter([[(np.ones(2), [[1, 2], [3, 4]]), (np.ones(2), [[5, 6]])]]))
    ((feed,),) = loader()
    assert type(feed["x"]) is type(feed["words"]) is Tensor
    assert feed["x"].lod() == [] and feed["words"].lod() == [[0, 2, 3]]
    assert np.array(feed["x"]).shape == (2, 2) and feed["words"].shape() == [3, 2]


def test_starts_and_resets_may_come_in_any_order(program):
    x = data(program)
    out = doubled(program, x)
    loader = PyReader(feed_list=[x], capacity=1, iterable=False).set_sample_generator(samples(4), batch_size=2)

    def first():
        return Executor().run(program, fetch_list=[out])[0].sum()

    loader.reset()
    loader.start()
    assert first() == 4.0
    loader.start()  # in the middle of a pass
    assert first() == 4.0 and first() == 20.0
    with pytest.raises(EndOfData):
        first()
    loader.start()  # after its end, without a reset
    assert first() == 4.0
    loader.reset()
    loader.reset()
    assert not loader.is_started()
    loader.start()
    assert first() == 4.0


def test_the_queue_tells_what_waits_and_takes_batches_of_the_script(program):
    reader = py_reader(capacity=3, shapes=[[-1, 2]], dtypes=["float32"])
    out = doubled(program, read_file(reader))
    queue = reader.queue
    assert (queue.size(), queue.capacity(), queue.is_closed()) == (0, 3, False)
    assert queue.push([np.ones((1, 2), "float32")]) and queue.push([Tensor(np.zeros((3, 2), "float32"))])
    queue.close()
    assert (queue.size(), queue.is_closed()) == (2, True)
    assert [Executor().run(program, fetch_list=[out])[0].shape for _ in range(2)] == [(1, 2), (3, 2)]
    with pytest.raises(EndOfData):
        Executor().run(program, fetch_list=[out])
    reader.reset()
    queue.kill()
    assert not queue.push([np.ones((1, 2), "float32")])


def test_the_queue_of_a_started_loader_fills_up_to_its_capacity(program):
    loader = PyReader(feed_list=[data(program)], capacity=2, iterable=False)
    loader.set_sample_generator(samples(40), batch_size=1)
    loader.start()
    deadline = time.monotonic() + 10
    while loader.queue.size() < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert loader.queue.size() == 2 and not loader.queue.is_closed()


def test_a_loader_over_a_dataset_drops_a_last_batch_that_is_shorter_or_not(program):
    words = data(program, "words", lod_level=1)
    feeds = [{"words": (np.ones((4, 2), "float32"), [1, 3])}, {"words": (np.ones((1, 2), "float32"), [1])}]
    dataset = SimpleNamespace(use_var=[words], batch_size=2, batches=lambda: iter(feeds))
    for drop_last, expected in ((True, [[[0, 1, 4]]]), (False, [[[0, 1, 4]], [[0, 1]]])):
        loader = DataLoader.from_dataset(dataset, drop_last=drop_last)
        assert [feed["words"].lod() for (feed,) in loader()] == expected
