"""Stores of rows with their keepers, one for each of some servers, and batches of pushes that they get."""

import numpy as np

from fleet_mpi.arrays import ANY_HEIGHT, Rows
from fleet_mpi.kernels.reference import partitions, row_draws
from fleet_mpi.parameter_server.tables.growing.keeping import Keeper, Keeping, pushes_of
from fleet_mpi.parameter_server.tables.growing.store import RowStore
from fleet_mpi.parameter_server.tables.rows import RowMean

WIDTH, KEY, RATE = 3, 12345, np.array([0.1], np.float32)


def first_values(ids, out):
    """Drawn by counter."""
    row_draws.uniform(ids, out, KEY, -1.0, 1.0)


def new_keeper(keeping, budget_bytes=64 << 20):
    """A keeper of an empty store."""
    store = RowStore(WIDTH, "float32", "adagrad", {}, first_values, keeping.budget_bytes or budget_bytes,
                     bool(keeping.score))
    return Keeper(keeping, store, KEY)


def line(*ids):
    """As int64."""
    return np.array(ids, np.int64)


class KeptBy:
    """A table over some servers: ``push`` is one update by what each worker brings, {id: number}."""

    def __init__(self, keeping, servers=1):
        self.keepers, self.mean = [new_keeper(keeping) for _ in range(servers)], RowMean(ANY_HEIGHT)

    def push(self, *workers):
        """One synchronous round."""
        for number, keeper in enumerate(self.keepers):
            contributions = [self._part(worker, number) for worker in workers]
            merged = self.mean(contributions)
            keeper.update(merged.ids, merged.values, pushes_of(merged.ids, contributions), RATE)

    def _part(self, given, number):
        ids = line(*given)
        mine = partitions.partitions_of(ids) * len(self.keepers) >> partitions.BITS == number
        values = np.array([[value] * WIDTH for value in given.values()], np.float32).reshape(-1, WIDTH)
        return Rows(ids[mine], values[mine], ANY_HEIGHT)

    @property
    def ids(self):
        """All that are stored, sorted."""
        return sorted(one for keeper in self.keepers for one in keeper.store.ids().tolist())

    @property
    def rows(self):
        """{id: (values, states, score), as bytes}."""
        return {one: (store.values()[slot].tobytes(), store.state("moment")[slot].tobytes(),
                      None if store.scores is None else int(store.scores[slot]))
                for keeper in self.keepers for store in [keeper.store] for slot, one in enumerate(store.ids().tolist())}


def same_for_any_number_of_servers(rounds, **words):
    """The table of one server, after it was compared with those of others."""
    tables = [KeptBy(Keeping(**words), servers) for servers in (1, 2, 3, 4)]
    for table in tables:
        for workers in rounds:
            table.push(*workers)
    assert all(table.rows == tables[0].rows for table in tables)
    return tables[0]


def drawn_rounds(seed, rounds, workers=2, most=40, ids=200):
    """Batches of each worker: some ids come often, others hardly ever."""
    draw = np.random.default_rng(seed)
    return [[{int(one) ** 2: float(draw.normal()) for one in draw.integers(0, draw.integers(1, ids), most)}
             for _ in range(workers)] for _ in range(rounds)]
