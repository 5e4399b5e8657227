"""fleet_mpi/data/samplers.py."""

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.data.samplers import BatchSampler, RandomSampler, Sampler, SequenceSampler, WeightedRandomSampler
from fleet_mpi.errors import UsageError

TEN = list(range(10))


def test_orders():
    assert list(SequenceSampler(TEN)) == TEN
    shuffled = RandomSampler(TEN)
    passes = [list(shuffled) for _ in range(2)]
    assert all(sorted(one) == TEN != one for one in passes) and passes[0] != passes[1]
    some = RandomSampler(TEN, num_samples=4)
    assert len(some) == len(set(some)) == 4
    assert len(list(RandomSampler(TEN, replacement=True, num_samples=30))) == 30
    assert list(RandomSampler(TEN, generator=iter([3, 1, 2, 5]), num_samples=3)) == [3, 1, 2]


def test_the_scripts_own_seed_counts_where_the_job_has_none():
    with settings.override(FLEET_MPI_SEED=0):
        runs = []
        for _ in range(2):
            np.random.seed(5)
            runs.append(list(RandomSampler(TEN)))
    assert runs[0] == runs[1]


def test_a_pass_is_drawn_when_it_begins():
    with settings.override(FLEET_MPI_SEED=0):
        np.random.seed(5)
        expected = list(BatchSampler(TEN, shuffle=True, batch_size=4))
        np.random.seed(5)
        begun = iter(BatchSampler(TEN, shuffle=True, batch_size=4))
        np.random.rand()
        assert list(begun) == expected


def test_weights_decide_how_often():
    drawn = list(WeightedRandomSampler([0, 1, 3], 4000))
    assert 0 not in drawn and 2.5 < drawn.count(2) / drawn.count(1) < 3.5
    assert sorted(WeightedRandomSampler([0, 1, 3], 2, replacement=False)) == [1, 2]


@pytest.mark.parametrize("drop_last, expected",
                         [(False, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]), (True, [[0, 1, 2, 3], [4, 5, 6, 7]])])
def test_batches(drop_last, expected):
    for batches in (BatchSampler(TEN, batch_size=4, drop_last=drop_last),
                    BatchSampler(sampler=SequenceSampler(TEN), batch_size=4, drop_last=drop_last)):
        assert list(batches) == expected and len(batches) == len(expected)


@pytest.mark.parametrize("make", [
    lambda: BatchSampler(), lambda: BatchSampler(TEN, SequenceSampler(TEN)), lambda: BatchSampler(TEN, batch_size=0),
    lambda: RandomSampler(TEN, num_samples=11), lambda: RandomSampler(TEN, num_samples=-1),
    lambda: WeightedRandomSampler([0, 0], 1), lambda: WeightedRandomSampler([1, 0], 2, False)])
def test_what_cannot_be_drawn_is_refused(make):
    with pytest.raises(UsageError):
        make()


def test_the_base_says_what_to_override():
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(Sampler(TEN))
