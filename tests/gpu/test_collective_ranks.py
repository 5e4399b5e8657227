"""Collective jobs of ranks with devices: one device each, the bits of exact sums, and the way taken in the log."""

import json
from pathlib import Path

import pytest

from fleet_mpi.program.engine import places
from tests.mpi.jobs import run_job

RANK = Path(__file__).with_name("collective_rank.py")
LONGEST_S = 300

pytestmark = pytest.mark.skipif(places.why_no_gpu() is not None, reason=f"needs a device: {places.why_no_gpu()}")


def run(ranks, **settings):
    """(what every rank printed, by rank; the line of rank 0's log that tells the way)."""
    ended = run_job(ranks, [RANK], env={"FLEET_MPI_SEED": "1", **settings}, timeout=LONGEST_S)
    assert ended.code == 0, ended.story()
    told = [json.loads(next(line for line in rank.out.splitlines() if line.startswith("{"))) for rank in ended.ranks]
    return told, next(line for line in ended.ranks[0].err.splitlines() if "all-reduce: " in line)


@pytest.mark.parametrize("ranks", (2, 4))
def test_exact_sums_are_the_same_bits_through_every_wire(ranks):
    staged, by_host = run(ranks, FLEET_MPI_ALLREDUCE="exact", FLEET_MPI_CUDA_AWARE="no")
    aware, straight = run(ranks, FLEET_MPI_ALLREDUCE="exact", FLEET_MPI_CUDA_AWARE="yes")
    assert len({one["hash"] for one in staged + aware}) == 1, (staged, aware)
    assert all(one["bits"] for one in staged + aware), "the host sums to other bits"
    assert "exact (in rank order, through pinned host memory" in by_host
    assert "exact (in rank order, straight from device memory" in straight


@pytest.mark.parametrize("settings", ({}, {"FLEET_MPI_ALLREDUCE": "fast", "FLEET_MPI_CUDA_AWARE": "yes"}), ids=str)
def test_fast_sums_leave_all_ranks_with_the_same_parameters(settings):
    told, line = run(2, **settings)
    assert len({one["hash"] for one in told}) == 1, told
    assert "all-reduce: nccl" in line or "all-reduce: fast" in line


def test_every_rank_has_its_own_device():
    told, _ = run(2, FLEET_MPI_ALLREDUCE="exact", FLEET_MPI_CUDA_AWARE="no")
    count = places.cuda_device_count()
    assert [one["device"] for one in told] == [one["by_place"] for one in told] == [0, 1 % count]
    assert all(one["flag"] in ("", str(one["device"])) for one in told)
