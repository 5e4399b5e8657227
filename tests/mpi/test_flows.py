"""Whole jobs, joined by themselves: every way to train synchronously gives the bits of one process that averages."""

import pytest

from tests.exact.averaging import averaged, digest
from tests.exact.cells import CELLS
from tests.mpi.jobs import ROOT, run_job

SCRIPT = str(ROOT / "tests" / "exact" / "flows.py")


@pytest.mark.parametrize("flow, cell, ranks", (
    ("transpiler", "batch norm, dropout", 3), ("fleet 1.x", "rows, clip by global norm", 4),
    ("SyncStrategy", "schedule by hand", 5), ("fleet 2.x", "batch norm, dropout, lamb", 5),
    ("fleet 2.x", "nce by rows", 4)))
def test_a_script_gives_the_bits_of_one_process(flow, cell, ranks):
    ended = run_job(ranks, [SCRIPT, flow, cell], timeout=100)
    assert ended.code == 0, ended.story()
    (_, workers, found), = (line.split() for line in ended.out.splitlines() if line.startswith("state"))
    assert found == digest(averaged(CELLS[cell], int(workers))), ended.story()
