"""What does a benchmark's line of JSON look like as a file of ``docs/figures``?

``python -m benchmarks.wide_and_deep --json | python -m benchmarks.figures wide_and_deep`` reads the last line of its
input and prints the file, of which tables and plots of the documents are made. Names: wide_and_deep; sparse (tables
alone) and sparse_mpi, both of ``benchmarks.sparse``. What else was going on on the machine is to be added by hand.
"""

import json
import statistics
import sys

from benchmarks import sparse, wide_and_deep


def main(argv=None):
    """Print the file; returns an exit code."""
    name, = sys.argv[1:] if argv is None else argv
    told = json.loads(sys.stdin.read().splitlines()[-1])
    print(written({**FILES[name](told), "machine": _machine(told["host"], told.get("mpi_family"))}))
    return 0


def of_wide_and_deep(told):
    """Examples a second by mode and batch, beside the limit."""
    rows = []
    for one in told["figures"]:
        if "refused" not in one:
            rates = wide_and_deep.rates_of(one)
            rows.append([f"{one['mode']}, {one['batch']}", *(round(rates[way]) for way in wide_and_deep.WAYS),
                         round(statistics.median(wide_and_deep.ratios_of(one["seconds"])), 3),
                         round(wide_and_deep.cpu_ratio(one["cpu_s"]), 3)])
    return {"title": "Wide & deep with a growing table, one server and two workers: examples per second",
            "command": "python -m benchmarks.wide_and_deep",
            "how": "*alone* is the limit: two workers with one thread each that exchange nothing. Both train in turns "
                   "within the same ranks; medians over rounds. *of CPU* is the ratio of CPU time, the server's "
                   "included.",
            "columns": ["mode, batch", *wide_and_deep.WAYS, "of the limit", "of CPU"], "rows": rows,
            "plots": [{"title": "Speed relative to no exchange (dashed: equal)", "unit": "x the limit",
                       "columns": ["of the limit"], "line": 1}]}


def of_sparse(told):
    """Rows a second of the table alone."""
    ways = [way for way in sparse.WAYS if way in told["results"][0]["rates"]]
    rows = [[f"{one['rows']:,}, {one['load']}, {one['ids']}",
             *(round(one["rates"][way], 1) if way in one["rates"] else None for way in ways)]
            for one in told["results"]]
    return {"title": "A growing table alone: million rows per second of one core",
            "command": "python -m benchmarks.sparse --only table --peer torch",
            "how": "16 float32 a row, Adagrad, batches of 106,496 ids, medians of rounds in turn, by thread CPU time. "
                   "*full* has as much memory as load 0.75, and evicts a row for each of the hundredth of its ids that "
                   "are new. *take* is numpy.take over a plain array.",
            "columns": ["rows, load, ids", *ways], "rows": rows,
            "plots": [{"title": "Rows of a growing table", "unit": "million rows/s",
                       "columns": [way for way in ("pull", "take", "push") if way in ways]}]}


def of_sparse_mpi(told):
    """Rows a second between one server and one worker."""
    ways = ["pull", "raw pull", "push", "raw push"]
    rows = [[f"{one['rows']:,}, {one['ids']}", *(round(one["rates"][way], 2) for way in ways)] for one in told["mpi"]]
    return {"title": "Rows of a growing table between one server and one worker: million rows per second",
            "command": "python -m benchmarks.sparse --only mpi",
            "how": "The same rows and batches by wall clock; a push includes merging. *raw* sends the same bytes by "
                   "blocking mpi4py calls, and neither finds nor updates rows.",
            "columns": ["rows, ids", *ways], "rows": rows,
            "plots": [{"title": "Rows between two ranks", "unit": "million rows/s", "columns": ways}]}


FILES = {"wide_and_deep": of_wide_and_deep, "sparse": of_sparse, "sparse_mpi": of_sparse_mpi}


def written(found):
    """The file's text, a row a line."""
    parts = [f"  {json.dumps(name)}: {_rows(value) if name == 'rows' else json.dumps(value)}"
             for name, value in found.items()]
    return "{\n" + ",\n".join(parts) + "\n}"


def _rows(rows):
    return "[\n" + ",\n".join(f"    {json.dumps(row)}" for row in rows) + "\n  ]"


def _machine(facts, mpi):
    parts = [f"{facts['cores']} cores, {facts['cpu']}", f"numpy {facts['numpy']}", mpi, f"commit {facts['commit']}"]
    return ", ".join(part for part in parts if part) + "."


if __name__ == "__main__":
    sys.exit(main())
