"""fleet_mpi/fleet/batch_sampling.py."""

import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.fleet.batch_sampling import DistributedBatchSampler


def batches(samples, workers, **how):
    return [list(DistributedBatchSampler(range(samples), 3, workers, worker, **how)) for worker in range(workers)]


def test_workers_take_whole_batches_in_turn_and_share_what_is_left():
    assert batches(16, 2) == [[[0, 1, 2], [6, 7, 8], [12, 13]], [[3, 4, 5], [9, 10, 11], [14, 15]]]
    assert batches(16, 2, drop_last=True) == [[[0, 1, 2], [6, 7, 8]], [[3, 4, 5], [9, 10, 11]]]


def test_the_first_samples_come_again_where_the_numbers_do_not_divide():
    assert batches(7, 2) == [[[0, 1, 2], [6]], [[3, 4, 5], [0]]]
    assert batches(2, 5) == [[[0]], [[1]], [[0]], [[1]], [[0]]]


@pytest.mark.parametrize("samples, workers", [(16, 2), (17, 3), (5, 4)])
@pytest.mark.parametrize("drop_last", [False, True])
def test_all_workers_have_as_many_batches_as_their_length_says(samples, workers, drop_last):
    for worker in range(workers):
        sampler = DistributedBatchSampler(range(samples), 3, workers, worker, drop_last=drop_last)
        assert len(list(sampler)) == len(sampler)


def test_the_epoch_alone_decides_the_order_and_workers_cut_the_same_one():
    first, again = batches(16, 2, shuffle=True), batches(16, 2, shuffle=True)
    assert first == again and sorted(sum(sum(first, []), [])) == list(range(16))
    sampler = DistributedBatchSampler(range(16), 3, 2, 0, shuffle=True)
    one, two = list(sampler), list(sampler)
    sampler.set_epoch(0)
    assert one == first[0] == list(sampler) and two != one


def test_alone_a_process_has_all_samples():
    sampler = DistributedBatchSampler(range(5), 3)
    assert (sampler.nranks, sampler.local_rank) == (1, 0) and list(sampler) == [[0, 1, 2], [3, 4]]


def test_a_rank_that_is_none_is_refused():
    with pytest.raises(UsageError, match="out of range"):
        DistributedBatchSampler(range(5), 3, 2, 2)
