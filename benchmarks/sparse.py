"""How many rows a second does a growing table give and update, and what memory does a row take?

``python -m benchmarks.sparse [--quick] [--json] [--rows 1000000,10000000] [--only table,mpi] [--peer torch]``

*table*: the table alone, in one process and one thread, 16 float32 a row, Adagrad, batches of 106,496 ids. *pull* is
find and gather; *push* is find and update of merged rows, *merge* what comes before it; *take* is numpy's over a plain
array of as many rows. The index is filled to 0.5, 0.625 and 0.75; ids are drawn uniformly and by Zipf 1.05. Then a
table with as much memory that is full: one id of a hundred is new to it, and evicts the row that was unused for
longest; its push is find, evict, make and update. All ways are measured in turns; figures are medians over rounds, in
million rows a second of thread CPU time, so that a busy machine does not count; below them by wall clock.

*mpi*: 1 server and 1 worker, which pulls (rows asked for) and pushes (rows after its merge, which is part of it), by
wall clock, with the CPU time of both ranks beside it, beside the same bytes by blocking mpi4py calls.
"""

import argparse
import itertools
import json
import statistics
import sys
import time

import numpy as np

from benchmarks import host, mpi_ranks
from benchmarks.sparse_ids import BATCH, DRAWS, Batch, drawn, ids_of
from benchmarks.sparse_tables import WIDTH, Full, Grown, Peers

BATCHES = 12
LOADS = (0.5, 0.625, 0.75)
AIMS = {"pull": 20.0, "push": 8.0}
AIMS_OVER_MPI = {"pull": 4.0, "push": 2.0}
MOST_BEYOND = 21.0
MOST_APART = 0.1   # of one load, or a full table, from the middle one
WAYS = ("pull", "take", "merge", "push", "torch pull", "torch push")
PARTS = ("table", "mpi")
QUICK_ROWS = 200_000


def main(argv=None):
    """Print the tables; returns an exit code."""
    options = _options(argv)
    if options.peer and not host.has("torch"):
        print("torch is not installed beside this Python: no peer")
        options.peer = None
    sizes, found, over_mpi = (QUICK_ROWS,) if options.quick else options.rows, [], []
    if "table" in options.only:
        _warm_up()
        for rows in sizes:
            found += _table(rows, options)
    if "mpi" in options.only:
        over_mpi = [_over_mpi(rows, ids, options) for rows in sizes for ids in DRAWS]
    if options.json:
        print(json.dumps({"benchmark": "sparse", "host": host.facts(), "batch": BATCH, "width": WIDTH,
                          "results": found, "mpi": over_mpi,
                          "mpi_family": mpi_ranks.family() if over_mpi else None}))
    return 0


def _warm_up():
    """Compile: what that takes shall be in no table's memory."""
    small = Grown()
    small.fill(5000)
    for way in small.ways().values():
        way(Batch(ids_of(np.arange(BATCH) % 5000), None, ids_of(np.arange(5000))))


def _table(rows, options):
    """The figures of one size, printed as they come."""
    entries = 1 << round(np.log2(rows / LOADS[1]))
    print(f"\n{f'about {rows:,} rows, M rows/s':34}" + "".join(f"{way:>12}" for way in _ways(options)) + "  aims")
    held, grown, found = 0, Grown(), []
    for load in LOADS:
        held -= resident_bytes()
        grown.fill(min(int(load * entries), entries * 3 // 4 - 1))
        held += resident_bytes()
        beyond = (held - grown.store.nbytes["rows"]) / grown.store.count
        found += _loaded(grown, load, beyond, options)
        print(f"  bytes of a row beyond values and states: {beyond:.1f} by RSS, {_beyond(grown.store):.1f} as counted; "
              f"aim at most {MOST_BEYOND:g}: {_met(beyond <= MOST_BEYOND)}")
    budget_bytes = sum(grown.store.nbytes.values())
    del grown
    found += _full(budget_bytes, options)
    for ids in DRAWS:
        print(_even_line(ids, [one for one in found if one["ids"] == ids]))
    return found


def _loaded(grown, load, beyond, options):
    """Figures of a table that is filled so far, beside its peers."""
    peers, found = Peers(grown.store.count, options.peer), []
    for ids, draw in DRAWS.items():
        batches = drawn(draw, grown.store.count, _batches(options))
        cpu, wall = measured({**grown.ways(), **peers.ways(batches)}, itertools.repeat(batches), options)
        found.append({"rows": grown.store.count, "load": load, "ids": ids, "beyond_bytes": beyond, "rates": cpu,
                      "wall": wall})
        print(_lines(found[-1], options), flush=True)
    return found


def _full(budget_bytes, options):
    """Figures of a table that is full and evicts."""
    full, found = Full(budget_bytes), []
    for ids, draw in DRAWS.items():
        cpu, wall = measured(full.ways(), full.drawn_anew(draw, _batches(options)), options)
        found.append({"rows": full.store.count, "load": "full", "ids": ids, "rates": cpu, "wall": wall})
        print(_lines(found[-1], options), flush=True)
    return found


def measured(ways, batches_by_round, options):
    """({what: million rows a second of thread CPU time}, {the same by wall clock}), medians of rounds in turn."""
    cpu, wall = ({way: [] for way in ways} for _ in range(2))
    for number, batches in zip(range(_rounds(options) + 1), batches_by_round):
        for way, run in ways.items():
            used, began = time.thread_time(), time.perf_counter()
            rows = sum(run(batch) for batch in batches)
            if number:   # the first round compiles and warms up
                cpu[way].append(rows / (time.thread_time() - used) / 1e6)
                wall[way].append(rows / (time.perf_counter() - began) / 1e6)
    return tuple({way: statistics.median(found) for way, found in rates.items()} for rates in (cpu, wall))


def _over_mpi(rows, ids, options):
    found = mpi_ranks.run(2, "sparse_ranks", ids, {"rows": rows, "batches": _batches(options),
                                                   "rounds": _rounds(options)})
    rates = {way: one["rows"] / statistics.median(one["seconds"]) / 1e6 for way, one in found.items()}
    cpu_us = {way: [1e6 * statistics.median(rank) / one["rows"] for rank in zip(*one["cpu_s"])]
              for way, one in found.items()}
    print(f"\nover MPI, {rows:,} rows, {ids}: M rows/s (CPU us a row of server and worker)")
    for way, aim in AIMS_OVER_MPI.items():
        spent = " and ".join(f"{one:.3f}" for one in cpu_us[way])
        print(f"{way:6}{rates[way]:8.2f} ({spent}), raw {rates[f'raw {way}']:.2f}; aim {aim:g}: "
              f"{_met(rates[way] >= aim)}", flush=True)
    return {"rows": rows, "ids": ids, "rates": rates, "cpu_us": cpu_us, "rounds": found}


def _ways(options):
    return [way for way in WAYS if options.peer or not way.startswith("torch")]


def _lines(row, options):
    """By CPU time with the aims, and by wall clock."""
    met = ", ".join(f"{way} {aim:g}: {_met(row['rates'][way] >= aim)}" for way, aim in AIMS.items())
    load = row["load"] if row["load"] == "full" else f"load {row['load']:g}"
    title = f"{row['rows']:,} rows, {load}, {row['ids']}"
    return (f"{title:34}{_cells(row['rates'], options)}  {met}\n"
            f"{'  by wall clock':34}{_cells(row['wall'], options)}")


def _cells(rates, options):
    return "".join(f"{rates[way]:12.1f}" if way in rates else f"{'':12}" for way in _ways(options))


def _even_line(ids, rows):
    """How far apart the loads and the full table are."""
    told = []
    for way in AIMS:
        rates = [one["rates"][way] for one in rows]
        apart = max(abs(rate / statistics.median(rates) - 1) for rate in rates)
        told.append(f"{way} {apart:.0%}: {_met(apart <= MOST_APART)}")
    return f"  {ids}, furthest from the middle one, aim at most {MOST_APART:.0%}: {', '.join(told)}"


def _beyond(store):
    held = store.nbytes
    return (sum(held.values()) - held["rows"]) / store.count


def _met(is_met):
    return "met" if is_met else "NOT met"


def _batches(options):
    return 2 if options.quick else BATCHES


def _rounds(options):
    return 2 if options.quick else options.rounds


def resident_bytes():
    """Of this process in memory."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS:"))


def _options(argv):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sparse", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, for breakage, not for numbers")
    parser.add_argument("--json", action="store_true", help="add a line with all figures")
    parser.add_argument("--rows", type=lambda text: [int(one) for one in text.split(",")],
                        default=[1_000_000, 10_000_000], help="about how many rows, between commas")
    parser.add_argument("--only", type=lambda text: text.split(","), default=PARTS, metavar="PARTS",
                        help="some of table,mpi")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peer", choices=["torch"], help="measure Embedding with sparse Adagrad in the same run")
    options = parser.parse_args(argv)
    if not set(options.only) <= set(PARTS):
        parser.error(f"--only: expected some of {', '.join(PARTS)}, got {', '.join(options.only)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
