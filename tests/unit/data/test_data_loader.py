"""fleet_mpi/data/data_loader.py, in one process; with workers: test_worker_pool.py."""

import threading

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.data.data_loader import DataLoader, FluidDataLoader
from fleet_mpi.data.io_datasets import Dataset, IterableDataset, TensorDataset
from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Tensor
from tests.unit.program.building import data


class Rows(Dataset):
    def __getitem__(self, idx):
        return np.full(2, idx, "float32"), idx

    def __len__(self):
        return 7


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(7))


def numbers(loader):
    return [batch[-1].tolist() for batch in loader]


def test_batches_come_as_lists_of_arrays():
    loader = DataLoader(Rows(), batch_size=3)
    assert numbers(loader) == numbers(loader()) == [[0, 1, 2], [3, 4, 5], [6]] and len(loader) == 3
    first = next(iter(loader))
    assert type(first) is list and first[0].shape == (3, 2)
    assert numbers(DataLoader(Rows(), batch_size=3, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    assert numbers(DataLoader(Rows(), batch_sampler=[[5, 1], [2]])) == [[5, 1], [2]]


def test_feeds_are_given_by_name_and_taken_by_the_executor():
    x, label = data("x", [-1, 2]), data("label", [-1, 1], "int64")
    ((feed,), *_) = DataLoader(Rows(), feed_list=[x, label], return_list=False, batch_size=3)
    assert type(feed["x"]) is Tensor and feed["x"].shape() == [3, 2]
    assert Executor().run(feed=[feed], fetch_list=[x])[0].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert type(next(iter(FluidDataLoader(Rows(), [x, label])))[0]) is dict
    with pytest.raises(UsageError, match="feed_list"):
        FluidDataLoader(Rows())


def test_shuffled_passes_differ_and_follow_the_scripts_seed():
    loader = DataLoader(Rows(), batch_size=7, shuffle=True)
    assert numbers(loader) != numbers(loader)
    with settings.override(FLEET_MPI_SEED=0):
        runs = []
        for _ in range(2):
            np.random.seed(1)
            runs.append(numbers(DataLoader(Rows(), batch_size=3, shuffle=True)))
    assert runs[0] == runs[1]


def test_streams_and_single_samples():
    assert numbers(DataLoader(Stream(), batch_size=3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert numbers(DataLoader(Stream(), batch_size=3, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    assert numbers(DataLoader(Stream(), batch_size=None)) == numbers(DataLoader(Rows(),
                                                                                batch_size=None)) == list(range(7))
    assert len(DataLoader(Rows(), batch_size=None)) == 7
    with pytest.raises(TypeError, match="no length"):
        len(DataLoader(Stream()))


def test_a_script_may_put_samples_together_itself():
    loader = DataLoader(Rows(), batch_size=4, collate_fn=lambda samples: (sum(i for _, i in samples),))
    assert list(loader) == [[6], [15]]


def test_an_error_of_the_dataset_comes_at_its_place():
    class Broken(Rows):
        def __getitem__(self, idx):
            return 1 // (idx - 4)

    batches = iter(DataLoader(Broken(), batch_size=2))
    assert next(batches) and next(batches)
    with pytest.raises(ZeroDivisionError):
        next(batches)


@pytest.mark.parametrize("how", [
    dict(dataset=Stream(), shuffle=True), dict(dataset=Stream(), batch_sampler=[[1]]),
    dict(dataset=Rows(), batch_sampler=[[1]], batch_size=2), dict(dataset=Rows(), batch_size=None, shuffle=True),
    dict(dataset=Rows(), batch_size=0), dict(dataset=Rows(), num_workers=-1)])
def test_what_contradicts_itself_is_refused(how):
    with pytest.raises(UsageError):
        DataLoader(**how)


def test_a_dataset_that_cannot_be_handed_over_is_loaded_here_and_that_is_said(capfd):
    class Locked(Rows):
        def __init__(self):
            self.lock = threading.Lock()

    assert numbers(DataLoader(Locked(), batch_size=7, num_workers=2)) == [list(range(7))]
    assert "Locked cannot be handed to worker processes" in capfd.readouterr().err


def test_arrays_are_a_dataset():
    loader = DataLoader(TensorDataset([np.arange(4), np.arange(4) * 2]), batch_size=2)
    assert [[one.tolist() for one in batch] for batch in loader] == [[[0, 1], [0, 2]], [[2, 3], [4, 6]]]
