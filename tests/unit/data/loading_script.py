"""A script as users write it, without ``if __name__``: run by test_worker_pool.py, prints one line per claim."""

import os
import sys
import time
from functools import lru_cache

import numpy as np

from fleet_mpi.data.data_loader import DataLoader
from fleet_mpi.data.fetching import get_worker_info
from fleet_mpi.data.io_datasets import Dataset, IterableDataset
from fleet_mpi.errors import EnvironmentProblem, Stalled

COUNT = 11
unneeded = open(os.devnull)  # names a worker need not know may be what no pickle can hold


def scaled(x):
    return x * FACTOR


FACTOR = 2.0


@lru_cache(maxsize=4)
def kept(number):
    return number + 1


class Base(Dataset):
    def __len__(self):
        return COUNT


class Rows(Base):
    def __init__(self, shift=0):
        super().__init__()
        self.shift = shift
        self.change = lambda x: scaled(x) + shift

    def __getitem__(self, idx):
        return self.made(self.change(idx)), kept(idx) - 1, self.size

    @staticmethod
    def made(value):
        return np.full(2, value, "float32")

    @property
    def size(self):
        return len(self) if self.shift < 100 else unneeded


class Importing(Base):
    def __getitem__(self, idx):
        return int("__builtins__" in globals())  # where C functions that import look, as array.sum may


class Stream(IterableDataset):
    def __init__(self, shares):
        self.shares = shares

    def __iter__(self):
        info = get_worker_info() if self.shares else None
        yield from range(info.id if info else 0, COUNT, info.num_workers if info else 1)


class Failing(Rows):
    def __getitem__(self, idx):
        if idx == 4:
            raise KeyError("no fourth")
        if idx == 5:
            os.kill(os.getpid(), 9)
        if idx == 6:
            time.sleep(60)
        return os.getpid()


def shown(loader):
    return [[np.asarray(field).tolist() for field in batch] for batch in loader]


def greet(worker):
    print(f"worker {worker} of {get_worker_info().num_workers} of {get_worker_info().dataset.shift}", flush=True)


alone = shown(DataLoader(Rows(3), batch_size=2))
loader = DataLoader(Rows(3), batch_size=2, num_workers=3)
print("same", shown(loader) == shown(loader) == alone, loader._pools[0].workers[0].process.args[1:3])
loader.dataset = Rows(4)
print("anew", shown(loader) == shown(DataLoader(Rows(4), batch_size=2)))
for batch in loader:
    early = batch
    break
print("after a break", shown(loader)[0] == shown([early])[0], len(loader._pools))
print("streams",
      shown(DataLoader(Stream(False), batch_size=4, num_workers=2)) == shown(DataLoader(Stream(False), batch_size=4)),
      shown(DataLoader(Stream(True), batch_size=4, num_workers=2)))
print("imports", {one for batch in shown(DataLoader(Importing(), num_workers=1)) for one in np.ravel(batch).tolist()})
shown(DataLoader(Rows(9), num_workers=1, worker_init_fn=greet))

workers = [worker.process for worker in loader._pools[0].workers]
del loader
print("ended", [process.poll() for process in workers])
pids = []
for problem, order in ((KeyError, [[0], [1], [4]]), (EnvironmentProblem, [[0], [1], [2], [5]]),
                       (Stalled, [[0], [1], [6]])):
    try:
        for batch in DataLoader(Failing(), num_workers=2, batch_sampler=order,
                                timeout=20 if problem is not Stalled else 1):
            pids += np.asarray(batch).ravel().tolist()
    except problem as error:
        print(problem.__name__, error, str(error.__cause__).strip()[-21:] if problem is KeyError else "")
print("left", sum(os.path.exists(f"/proc/{pid}") for pid in pids))
sys.stdout.flush()
