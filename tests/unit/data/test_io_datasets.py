"""fleet_mpi/data/io_datasets.py."""

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.data.io_datasets import (
    ChainDataset,
    ComposeDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)
from fleet_mpi.errors import UsageError


class Squares(Dataset):
    def __init__(self, count):
        self.count = count

    def __getitem__(self, idx):
        return idx, idx * idx

    def __len__(self):
        return self.count


class Stream(IterableDataset):
    def __init__(self, *values):
        self.values = values

    def __iter__(self):
        return iter(self.values)


def test_datasets_are_put_together():
    pairs = TensorDataset([np.arange(6).reshape(3, 2), np.array([7, 8, 9])])
    assert len(pairs) == 3 and [part.tolist() for part in pairs[1]] == [[2, 3], 8]
    assert list(Subset(Squares(5), [4, 2])) == [(4, 16), (2, 4)]
    assert ComposeDataset([Squares(3), Squares(3)])[2] == (2, 4, 2, 4)
    joined = ConcatDataset([Squares(2), Squares(3)])
    assert [joined[i][0] for i in range(len(joined))] == [0, 1, 0, 1, 2] and joined[-1] == (2, 4)
    assert list(ChainDataset([Stream(1, 2), Stream(), Stream(3)])) == [1, 2, 3]


@pytest.mark.parametrize("make", [lambda: TensorDataset([np.ones(2), np.ones(3)]), lambda: TensorDataset([]),
                                  lambda: ComposeDataset([Squares(2), Squares(3)])])
def test_parts_of_different_lengths_are_refused(make):
    with pytest.raises(UsageError, match="length"):
        make()


def test_a_split_has_every_sample_once_and_repeats_with_its_seed():
    parts = random_split(Squares(10), [6, 3, 1])
    numbers = [i for part in parts for i, _ in part]
    assert [len(part) for part in parts] == [6, 3, 1] and sorted(numbers) == list(range(10)) != numbers
    assert [len(part) for part in random_split(Squares(10), [0.55, 0.45])] == [6, 4]
    with settings.override(FLEET_MPI_SEED=0):
        runs = []
        for _ in range(2):
            np.random.seed(3)
            runs.append([part.indices for part in random_split(Squares(10), [5, 5])])
    assert runs[0] == runs[1]


@pytest.mark.parametrize("lengths", [[5, 4], [0.5, 0.6]])
def test_lengths_that_are_not_the_whole_are_refused(lengths):
    with pytest.raises(UsageError, match="add up"):
        random_split(Squares(10), lengths)


def test_what_must_be_overridden_says_so():
    for use in (lambda: Dataset()[0], lambda: len(Dataset()), lambda: iter(IterableDataset())):
        with pytest.raises(NotImplementedError, match="override"):
            use()
    with pytest.raises(UsageError, match="not by number"):
        Stream(1)[0]
    with pytest.raises(TypeError, match="no length"):
        len(Stream(1))
