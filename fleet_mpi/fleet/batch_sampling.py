"""``DistributedBatchSampler``: every worker of a job reads its own part of a map-style dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.data.samplers import BatchSampler, batch_count, cut, whole_number
from fleet_mpi.errors import UsageError
from fleet_mpi.fleet.parallel_env import ParallelEnv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any


class DistributedBatchSampler(BatchSampler):
    """Batches of this worker: of every ``num_replicas`` batches in a row, the one with its number.

    All workers have the same number of batches: the first samples come again at the end where the numbers do not
    divide. Shuffled, the order follows from the epoch alone, so that all workers cut the same one; it is another one
    in every pass, and ``set_epoch`` says which.

    Args:
        num_replicas, rank: the number of workers and that of this one; None: as the job has it.
    """

    def __init__(self, dataset: Any, batch_size: int, num_replicas: int | None = None, rank: int | None = None,
                 shuffle: bool = False, drop_last: bool = False) -> None:
        super().__init__(dataset, batch_size=batch_size, drop_last=drop_last)
        job: Any = ParallelEnv() if num_replicas is None or rank is None else None
        self.dataset, self.shuffle, self.epoch = dataset, shuffle, 0
        self.nranks = job.nranks if num_replicas is None else whole_number("DistributedBatchSampler", "num_replicas",
                                                                           num_replicas)
        self.local_rank = job.local_rank if rank is None else whole_number("DistributedBatchSampler", "rank", rank, 0)
        if self.local_rank >= self.nranks:
            raise UsageError(f"DistributedBatchSampler: rank {self.local_rank} is out of range: there are "
                             f"{self.nranks} workers")

    @property
    def num_samples(self) -> int:
        """How many samples a pass of one worker has."""
        return -(-len(self.dataset) // self.nranks)

    @property
    def total_size(self) -> int:
        """How many samples a pass of all workers has."""
        return self.num_samples * self.nranks

    def set_epoch(self, epoch: int) -> None:
        """Which order the next pass has, where it is shuffled."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        numbers = np.resize(np.arange(len(self.dataset)), self.total_size)
        if self.shuffle:
            # The original's generator and its use, so that an epoch has the same order as there.
            listed = numbers.tolist()
            np.random.RandomState(self.epoch).shuffle(listed)
            numbers = np.asarray(listed)
            self.epoch += 1
        return cut(iter(self._mine(numbers)), self.batch_size, self.drop_last)

    def __len__(self) -> int:
        return batch_count(self.num_samples, self.batch_size, self.drop_last)

    def _mine(self, numbers: np.ndarray) -> list[int]:
        """This worker's batches, and its share of what is left after whole rounds of batches."""
        round_size = self.batch_size * self.nranks
        whole = len(numbers) - len(numbers) % round_size
        left = numbers[whole:].reshape(self.nranks, -1)[self.local_rank]
        rounds = numbers[:whole].reshape(-1, self.nranks, self.batch_size)[:, self.local_rank]
        return [*rounds.ravel().tolist(), *left.tolist()]


def distributed_batch_reader(batch_reader: Callable[[], Iterable[Any]]) -> Callable[[], Iterator[Any]]:
    """A reader of this worker's batches: of every round of as many batches as there are workers, the one with its
    number.

    A last round that is not whole is left out, so that all workers have the same number.
    """
    def read_own() -> Iterator[Any]:
        job, own = ParallelEnv(), None
        for number, batch in enumerate(batch_reader()):
            place = number % job.nranks
            own = batch if place == job.local_rank else own
            if place == job.nranks - 1:
                yield own
    return read_own
