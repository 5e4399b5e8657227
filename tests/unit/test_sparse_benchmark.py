"""The benchmark of growing tables runs, a full table evicts, and what is measured becomes a file of the documents."""

import importlib.util
import io
import json

import numpy as np
import pytest

from benchmarks import figures, sparse, sparse_ids, sparse_tables

pytestmark = pytest.mark.slow

HAS_PEER = importlib.util.find_spec("torch") is not None


def test_a_growing_table_is_timed_beside_a_plain_one(capsys):
    assert sparse.main(["--quick", "--json", "--only", "table", "--peer", "torch"]) == 0
    said = capsys.readouterr().out
    told = json.loads(said.splitlines()[-1])
    assert [(row["load"], row["ids"]) for row in told["results"]] == [
        (load, ids) for load in (*sparse.LOADS, "full") for ids in ("uniform", "Zipf 1.05")]
    assert all({"pull", "merge", "push"} <= {*row[by]} and min(row[by].values()) > 0
               for row in told["results"] for by in ("rates", "wall"))
    assert all("take" in row["rates"] for row in told["results"] if row["load"] != "full")
    assert ("torch is not installed beside this Python" in said) != HAS_PEER


def test_a_full_table_stays_as_large_as_it_is_and_takes_new_rows():
    like = sparse_tables.Grown()
    like.fill(200_000)
    full = sparse_tables.Full(sum(like.store.nbytes.values()))
    batch, = next(full.drawn_anew(sparse_ids.uniform, 1))
    new = np.setdiff1d(batch.ids, full.store.ids())
    assert 0.005 < len(new) / len(batch.ids) < 0.02
    full.push(batch)
    assert 0.95 * full.store.capacity < full.store.count <= full.store.capacity
    assert (full.store.find(new) >= 0).all()


MEASURED = {"host": {"cores": 2, "cpu": "x", "numpy": "2", "commit": "c"}, "figures": [
    {"mode": "sync", "batch": 512, "seconds": {"by server": [0.04], "alone": [0.03]},
     "cpu_s": {"by server": [[0.01, 0.02, 0.02]], "alone": [[0.001, 0.02, 0.02]]}},
    {"mode": "geo", "batch": 512, "refused": "why"}],
    "results": [{"rows": 1000, "load": 0.5, "ids": "uniform", "rates": {"pull": 2.0, "take": 3.0, "push": 1.0}},
                {"rows": 1000, "load": "full", "ids": "uniform", "rates": {"pull": 2.0, "push": 1.0}}],
    "mpi": [{"rows": 1000, "ids": "uniform", "rates": {"pull": 2.0, "raw pull": 4.0, "push": 1.0, "raw push": 3.0}}]}


@pytest.mark.parametrize("name, row", [("wide_and_deep", ["sync, 512", 25600, 34133, 0.75, 0.8]),
                                       ("sparse", ["1,000, full, uniform", 2.0, None, 1.0]),
                                       ("sparse_mpi", ["1,000, uniform", 2.0, 4.0, 1.0, 3.0])])
def test_what_was_measured_becomes_a_file_of_figures(name, row, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("a table\n" + json.dumps(MEASURED)))
    assert figures.main([name]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rows"][-1] == row and {len(one) for one in told["rows"]} == {len(told["columns"])}
    assert told["machine"] and told["how"] and told["title"]
    assert all({*plot["columns"]} <= {*told["columns"]} for plot in told["plots"])
