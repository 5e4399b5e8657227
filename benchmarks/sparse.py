"""How many rows a second does a growing table give and update, and what memory does a row take?

``python -m benchmarks.sparse [--quick] [--json] [--rows 1000000,10000000] [--peer torch]``: the table alone, in one
process and one thread, 16 float32 a row, Adagrad, batches of 106,496 ids. *pull* is find and gather; *push* is find and
update of merged rows, *merge* what comes before it; *take* is numpy's over a plain array of as many rows. The index is
filled to 0.5, 0.625 and 0.75; ids are drawn uniformly and by Zipf 1.05. All ways are measured in turns; figures are
medians over rounds, in million rows of thread CPU time a second, so that a busy machine does not count.
"""

import argparse
import json
import statistics
import sys
import time
from typing import NamedTuple

import numpy as np

from benchmarks import host
from fleet_mpi.arrays import Rows
from fleet_mpi.kernels.reference import random, row_draws
from fleet_mpi.parameter_server.tables.growing.store import RowStore
from fleet_mpi.update_rules import RowMerger

WIDTH, BATCH, BATCHES = 16, 106_496, 12
LOADS = (0.5, 0.625, 0.75)
AIMS = {"pull": 20.0, "push": 8.0}
MOST_BEYOND = 21.0
ZIPF = 1.05
WAYS = ("pull", "take", "merge", "push", "torch pull", "torch push")


class Batch(NamedTuple):
    """Ids, the places in a plain table of the same rows, and the ids with every one once."""

    ids: np.ndarray
    places: np.ndarray
    merged: np.ndarray


def main(argv=None):
    """Print the table; returns an exit code."""
    options = _options(argv)
    if options.peer and not host.has("torch"):
        print("torch is not installed beside this Python: no peer")
        options.peer = None
    _warm_up()
    found = []
    for rows in (20_000,) if options.quick else options.rows:
        found += _table(rows, options)
    if options.json:
        print(json.dumps({"benchmark": "sparse", "host": host.facts(), "batch": BATCH, "width": WIDTH,
                          "results": found}))
    return 0


def _warm_up():
    """Compile: what that takes shall be in no table's memory."""
    small = Grown()
    small.fill(5000)
    for way in small.ways(()).values():
        way(Batch(ids_of(np.arange(BATCH) % 5000), None, ids_of(np.arange(5000))))


def _table(rows, options):
    """The figures of one size, printed as they come."""
    entries = 1 << round(np.log2(rows / LOADS[1]))
    held, grown = 0, Grown()
    found = []
    print(f"\n{f'about {rows:,} rows, M rows/s':34}" + "".join(f"{way:>12}" for way in _ways(options)) + "  aims")
    for load in LOADS:
        held -= _resident()
        grown.fill(min(int(load * entries), entries * 3 // 4 - 1))
        held += _resident()
        beyond = (held - grown.store.nbytes["rows"]) / grown.store.count
        peers = Peers(grown.store.count, options.peer)
        for name, draw in (("uniform", uniform), (f"Zipf {ZIPF}", zipf)):
            batches = drawn(draw, grown.store.count, 2 if options.quick else BATCHES)
            rates = measured({**grown.ways(batches), **peers.ways(batches)}, batches, options)
            found.append({"rows": grown.store.count, "load": load, "ids": name, "beyond_bytes": beyond,
                          "rates": rates})
            print(_line(found[-1], _ways(options)), flush=True)
        print(f"  bytes of a row beyond values and states: {beyond:.1f} by RSS, {_beyond(grown.store):.1f} as counted; "
              f"aim at most {MOST_BEYOND:g}: {_met(beyond <= MOST_BEYOND)}")
        del peers
    return found


class Grown:
    """The growing table."""

    def __init__(self):
        key = random.key_of(1, "table", "sparse")
        self.store = RowStore(WIDTH, "float32", "adagrad", {"initial_accumulator_value": 0.1},
                              lambda ids, out: row_draws.uniform(ids, out, key, -0.1, 0.1))
        self.grads, self.rate = np.full((BATCH, WIDTH), 1e-3, np.float32), np.array([0.05], np.float32)
        self.out, self.merger = np.empty((BATCH, WIDTH), np.float32), RowMerger()

    def fill(self, rows):
        """Add rows until there are so many."""
        for begin in range(self.store.count, rows, BATCH):
            self.store.add(ids_of(np.arange(begin, min(begin + BATCH, rows))))

    def ways(self, batches):
        """{what: a function of a batch that returns how many rows it went over}."""
        def pull(batch):
            self.store.read(batch.ids, self.out)
            return len(batch.ids)

        def push(batch):
            self.store.update(self.store.add(batch.merged), self.grads[:len(batch.merged)], self.rate)
            return len(batch.merged)

        def merge(batch):
            self.merger.checked(Rows(batch.ids, self.grads, 1))
            return len(batch.ids)
        return {"pull": pull, "merge": merge, "push": push}


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
        """As ``Grown.ways``."""
        def take(batch):
            np.take(self.table, batch.places, axis=0, out=self.out, mode="clip")
            return len(batch.places)
        return {"take": take, **(self.torch.ways(batches) if self.torch else {})}


def measured(ways, batches, options):
    """{what: million rows a second}, the median of rounds in turn."""
    rates = {way: [] for way in ways}
    for number in range((2 if options.quick else options.rounds) + 1):
        for way, run in ways.items():
            began = time.thread_time()
            rows = sum(run(batch) for batch in batches)
            if number:   # the first round compiles and warms up
                rates[way].append(rows / (time.thread_time() - began) / 1e6)
    return {way: statistics.median(found) for way, found in rates.items()}


def drawn(draw, rows, count):
    """Batches of ids that are all stored."""
    rng = np.random.default_rng(4)
    order = rng.permutation(rows)   # the most frequent are anywhere in the table
    places = [order[draw(rng, rows)] for _ in range(count)]
    return [Batch(ids_of(one), one, ids_of(_once(one))) for one in places]


def uniform(rng, rows):
    """Row numbers, all alike."""
    return rng.integers(0, rows, BATCH)


def zipf(rng, rows):
    """Row numbers, number r about as frequent as (r + 1) ** -1.05."""
    share = rng.random(BATCH)
    return np.minimum(((1 - share) + share * rows ** (1 - ZIPF)) ** (1 / (1 - ZIPF)), rows).astype(np.int64) - 1


def ids_of(places):
    """Any 64-bit numbers, another for each place."""
    return (places.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)


def _once(places):
    """Each once, in order of occurrence, as a merge leaves them."""
    return places[np.sort(np.unique(places, return_index=True)[1])]


def _ways(options):
    return [way for way in WAYS if options.peer or not way.startswith("torch")]


def _line(row, ways):
    met = ", ".join(f"{way} {aim:g}: {_met(row['rates'][way] >= aim)}" for way, aim in AIMS.items())
    title = f"{row['rows']:,} rows, load {row['load']:g}, {row['ids']}"
    return f"{title:34}" + "".join(f"{row['rates'][way]:12.1f}" for way in ways) + f"  {met}"


def _beyond(store):
    held = store.nbytes
    return (sum(held.values()) - held["rows"]) / store.count


def _met(is_met):
    return "met" if is_met else "NOT met"


def _resident():
    """Bytes of this process that are in memory."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS:"))


def _options(argv):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sparse", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, for breakage, not for numbers")
    parser.add_argument("--json", action="store_true", help="add a line with all figures")
    parser.add_argument("--rows", type=lambda text: [int(one) for one in text.split(",")],
                        default=[1_000_000, 10_000_000], help="about how many rows, between commas")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peer", choices=["torch"], help="measure Embedding with sparse Adagrad in the same run")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
