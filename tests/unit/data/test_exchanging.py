"""Samples change workers: each ends up once, where it was sent, with all its slots."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from fleet_mpi.data.dataset import DatasetFactory
from fleet_mpi.data.exchanging import exchanged
from fleet_mpi.data.slots import parse, slots_of

VARIABLES = [SimpleNamespace(name="number", shape=(-1, 1), dtype="int64", lod_level=0),
             SimpleNamespace(name="words", shape=(-1, 1), dtype="int64", lod_level=1)]


class Together:
    """Gathers the arrays of threads that stand for workers."""

    def __init__(self, workers):
        self.barrier, self.values = threading.Barrier(workers), [None] * workers

    def gather(self, worker, value):
        """Every worker's array."""
        self.values[worker] = value
        self.barrier.wait(20)
        found = list(self.values)
        self.barrier.wait(20)
        return found

    def run(self, work):
        """[work(worker)] of all, at the same time."""
        results = [None] * len(self.values)

        def call(worker):
            results[worker] = work(worker)
        threads = [threading.Thread(target=call, args=(worker,)) for worker in range(len(self.values))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results


def lines(numbers):
    """Sample ``n`` has the number n and n % 3 + 1 words, all n."""
    return [f"1 {n} {n % 3 + 1} {' '.join([str(n)] * (n % 3 + 1))}\n".encode() for n in numbers]


@pytest.mark.parametrize("counts", ((5, 7, 3), (4, 0, 9), (0, 0, 1)))
def test_every_sample_goes_where_it_was_sent(counts):
    together, slots = Together(3), slots_of(VARIABLES)
    first = np.cumsum([0, *counts])

    def work(worker):
        numbers = range(first[worker], first[worker + 1])
        records = parse(lines(numbers), slots, "a file")
        whose = np.array([n % 3 for n in numbers], np.int64)
        return exchanged(records, whose, worker, 3, lambda value: together.gather(worker, value))
    for worker, found in enumerate(together.run(work)):
        expected = [n for n in range(first[-1]) if n % 3 == worker]
        feed = found.feed()
        assert feed["number"].reshape(-1).tolist() == expected
        values, lengths = feed["words"]
        assert lengths == [n % 3 + 1 for n in expected]
        assert values.reshape(-1).tolist() == [n for n in expected for _ in range(n % 3 + 1)]


def test_a_global_shuffle_loses_no_sample_and_mixes_the_workers(tmp_path):
    together = Together(2)

    def work(worker):
        path = tmp_path / f"part-{worker}"
        path.write_bytes(b"".join(lines(range(worker * 100, worker * 100 + 60))))
        dataset = DatasetFactory().create_dataset("InMemoryDataset")
        dataset.set_use_var(VARIABLES)
        dataset.set_batch_size(1000)
        dataset.set_filelist([str(path)])
        dataset.load_into_memory()
        role = SimpleNamespace(_all_gather=lambda value, among: together.gather(worker, value))
        dataset.global_shuffle(SimpleNamespace(worker_num=lambda: 2, worker_index=lambda: worker, _role_maker=role))
        return next(iter(dataset.batches()))["number"].reshape(-1).tolist()
    found = together.run(work)
    assert sorted(found[0] + found[1]) == [*range(60), *range(100, 160)]
    for numbers in found:
        assert 15 < sum(n < 100 for n in numbers) < 45 and numbers != sorted(numbers)
