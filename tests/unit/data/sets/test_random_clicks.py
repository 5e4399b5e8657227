"""The random reader of wide_and_deep's first version."""

import random

from fleet_mpi import settings
from fleet_mpi.data.readers import batch
from fleet_mpi.data.sets.random_clicks import data_reader


def test_a_thousand_samples_make_250_batches_of_four():
    samples = list(data_reader()())
    assert len(samples) == 1000 and len(list(batch(data_reader(), 4)())) == 250
    deep, wide, label = samples[0]
    assert (len(deep), len(wide), len(label)) == (16, 8, 1)
    assert all(0 <= number <= 10 ** 10 for sample in samples for number in sample[0] + sample[1])
    assert {sample[2][0] for sample in samples} == {0, 1}


def test_a_seed_repeats_it():
    with settings.override(FLEET_MPI_SEED=3):
        assert list(data_reader(5)()) == list(data_reader(5)())
    with settings.override(FLEET_MPI_SEED=0):
        random.seed(1)
        first = list(data_reader(5)())
        random.seed(1)
        assert first == list(data_reader(5)())
