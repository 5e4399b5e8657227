"""From orders to batches, in this process or in a worker process of a ``DataLoader``.

An order is a list of sample numbers, or None: the next samples of a stream. Knows nothing of processes but the
``WorkerInfo`` that a dataset may ask for.
"""

import itertools
from typing import Any, NamedTuple

from fleet_mpi.data.io_datasets import IterableDataset

_worker = None  # in a worker process, once a pass has begun


class WorkerInfo:
    """Which worker process this is: ``id`` of ``num_workers``, its copy of the ``dataset`` and its ``seed``."""

    def __init__(self, id, num_workers, dataset, seed):
        self.id, self.num_workers, self.dataset, self.seed = id, num_workers, dataset, seed
        self.was_asked_for = False

    def __repr__(self):
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed})"


def get_worker_info():
    """The WorkerInfo of this process; None in a process that loads for itself."""
    if _worker is not None:
        _worker.was_asked_for = True
    return _worker


def become_worker(info):
    """Let this process be a worker: what ``get_worker_info`` returns from now on."""
    global _worker
    _worker = info


class Work(NamedTuple):
    """What batches are made of: a dataset, how samples are put together, and of a stream also how many."""

    dataset: Any
    collate: Any
    batch_size: Any
    drop_last: bool


def fetcher(work):
    """A function from an order to a batch; StopIteration at the end of a stream."""
    return _StreamFetcher(work) if isinstance(work.dataset, IterableDataset) else _fetcher_by_number(work)


def _fetcher_by_number(work):
    if work.batch_size is None:
        return lambda number: work.collate(work.dataset[number])
    return lambda numbers: work.collate([work.dataset[number] for number in numbers])


class _StreamFetcher:
    """Cuts the samples of an iterable dataset into batches."""

    def __init__(self, work):
        self._work = work
        self._samples = None

    def __call__(self, order):
        if self._samples is None:
            self._samples = _share(iter(self._work.dataset))
        if self._work.batch_size is None:
            return self._work.collate(next(self._samples))
        samples = list(itertools.islice(self._samples, self._work.batch_size))
        if not samples or len(samples) < self._work.batch_size and self._work.drop_last:
            raise StopIteration
        return self._work.collate(samples)


def _share(samples):
    """This process's samples of a stream.

    A dataset that asked for its WorkerInfo has shared its samples out itself. Of one that did not, every worker has
    all samples: only the first one gives them, so that each comes once.
    """
    first = list(itertools.islice(samples, 1))
    if _worker is not None and _worker.id > 0 and not _worker.was_asked_for:
        return iter(())
    return itertools.chain(first, samples)
