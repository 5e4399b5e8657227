"""The tables that ``benchmarks.sparse`` measures: a growing one, one that is full and evicts, and plain ones.

Each gives ``ways``: {what: a function of a batch that returns how many rows it went over}.
"""

import numpy as np

from benchmarks.sparse_ids import BATCH, Batch, ids_of, once, scattered
from fleet_mpi.arrays import Rows
from fleet_mpi.kernels.reference import random, row_draws
from fleet_mpi.parameter_server.tables.growing.keeping import Keeper, Keeping
from fleet_mpi.parameter_server.tables.growing.store import RowStore
from fleet_mpi.update_rules import RowMerger

WIDTH = 16
KEY = random.key_of(1, "table", "sparse")
# Of the ids of a batch for a full table, those that it has never seen.
NEW_SHARE = 0.01


class Grown:
    """The growing table: 16 float32 a row, Adagrad."""

    def __init__(self, budget_bytes=None, keeps_scores=False):
        self.store = RowStore(WIDTH, "float32", "adagrad", {"initial_accumulator_value": 0.1},
                              lambda ids, out: row_draws.uniform(ids, out, KEY, -0.1, 0.1), budget_bytes, keeps_scores)
        self.grads, self.rate = np.full((BATCH, WIDTH), 1e-3, np.float32), np.array([0.05], np.float32)
        self.out, self.merger = np.empty((BATCH, WIDTH), np.float32), RowMerger()

    def fill(self, rows):
        """Add rows until there are so many."""
        for begin in range(self.store.count, rows, BATCH):
            self.store.add(ids_of(np.arange(begin, min(begin + BATCH, rows))))

    def ways(self):
        """What the table does with a batch."""
        return {"pull": self.pull, "merge": self.merge, "push": self.push}

    def pull(self, batch):
        """Find and gather."""
        self.store.read(batch.ids, self.out[:len(batch.ids)])
        return len(batch.ids)

    def push(self, batch):
        """Find and update merged rows."""
        self.store.update(self.store.add(batch.merged), self.grads[:len(batch.merged)], self.rate)
        return len(batch.merged)

    def merge(self, batch):
        """What comes before a push."""
        self.merger.checked(Rows(batch.ids, self.grads[:len(batch.ids)], 1))
        return len(batch.ids)


class Full(Grown):
    """The same within a budget, and full: new rows take the place of those that were unused for longest."""

    def __init__(self, budget_bytes):
        super().__init__(budget_bytes, keeps_scores=True)
        self.keeper = Keeper(Keeping(score="last_seen", when_full="evict"), self.store, KEY)
        self.fill(self.store.capacity)
        self.known = self.store.capacity   # places whose ids the table was given so far

    def push(self, batch):
        """Find, evict for rows that are new, and update."""
        count = len(batch.merged)
        self.keeper.update(batch.merged, self.grads[:count], np.ones(count, np.int64), self.rate)
        return count

    def drawn_anew(self, draw, count):
        """Without end: lists of so many batches of rows that are stored then, but for the NEW_SHARE."""
        rng = np.random.default_rng(5)
        while True:
            yield [self._batch(rng, draw) for _ in range(count)]

    def _batch(self, rng, draw):
        held = self.store.ids()
        ids = held[scattered(draw(rng, len(held)), len(held))]
        new = np.flatnonzero(rng.random(BATCH) < NEW_SHARE)
        ids[new] = ids_of(np.arange(self.known, self.known + len(new)))
        self.known += len(new)
        return Batch(ids, None, once(ids))


class Peers:
    """What others do with a plain table of as many rows."""

    def __init__(self, rows, peer):
        self.table, self.out = np.zeros((rows, WIDTH), np.float32), np.empty((BATCH, WIDTH), np.float32)
        self.table[...] = 0.5   # of zeros no page would be there
        self.torch = None
        if peer:
            from benchmarks import sparse_torch
            self.torch = sparse_torch.Table(rows, WIDTH, BATCH)

    def ways(self, batches):
        """numpy's, and the peer's if there is one."""
        return {"take": self.take, **(self.torch.ways(batches) if self.torch else {})}

    def take(self, batch):
        """Rows by place."""
        np.take(self.table, batch.places, axis=0, out=self.out, mode="clip")
        return len(batch.places)
