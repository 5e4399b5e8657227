"""Every way to sum over ranks with devices, over the MPI that is installed: the bits that are promised, the way taken.

Jobs are few, since each takes seconds: one per number of ranks, immediate and asynchronous, trains in all ways.
``pytest -s`` shows the hashes.
"""

import functools
import json
import os
import re

import pytest

from fleet_mpi.program.engine import places
from tests.gpu.device_jobs import WAYS, run_on_devices

pytestmark = pytest.mark.parametrize("ranks", (2, 4))
both = pytest.mark.parametrize("asynchronous", (False, True), ids=("immediate", "asynchronous"))

TAKEN = {"exact, staged": r"exact \(in rank order, through pinned host memory",
         "exact, aware": r"exact \(in rank order, straight from device memory",
         "fast, staged": r"fast \(in the library's order, through pinned host memory",
         "fast, aware": r"fast \(in the library's order, straight from device memory",
         "nccl": r"nccl \(in NCCL's order", "default": r"nccl \(in NCCL's order"}
TAKEN |= {f"AMP, {name}": TAKEN[name] for name in ("exact, staged", "exact, aware", "nccl")}


@functools.cache
def run(ranks, asynchronous):
    """(what every rank told, by rank; the lines of rank 0's log that tell the ways, in their order)."""
    ended = run_on_devices(ranks, "ways_rank.py", asynchronous=asynchronous, FLEET_MPI_SEED="1")
    assert ended.code == 0, ended.story()
    told = [json.loads(rank.out.splitlines()[-1]) for rank in ended.ranks]
    for way, digest in told[0]["hashes"].items():
        print(f"\n{ranks} ranks, {'asynchronous' if asynchronous else 'immediate'}: {way}: {digest}", end="")
    return told, [line for line in ended.ranks[0].err.splitlines() if "all-reduce: " in line]


@both
def test_the_way_taken_is_said_in_the_log(ranks, asynchronous):
    _, lines = run(ranks, asynchronous)
    assert len(lines) == len(WAYS), lines
    for line, name in zip(lines, WAYS):
        assert re.search(f"all-reduce: {TAKEN[name]}.*, {ranks} workers", line), (name, line)


@both
def test_ranks_stay_together_whatever_adds_up(ranks, asynchronous):
    told, _ = run(ranks, asynchronous)
    for name in WAYS:
        assert len({one["hashes"][name] for one in told}) == 1, name
        assert all(0 < loss < 10 for one in told for loss in one["losses"][name]), told


def test_exact_sums_are_the_same_bits_through_every_wire_at_every_run(ranks):
    found = {amp: {told[0]["hashes"][f"{amp}exact, {wire}"] for told, _ in (run(ranks, False), run(ranks, True))
                   for wire in ("staged", "aware")} for amp in ("", "AMP, ")}
    assert [len(hashes) for hashes in found.values()] == [1, 1], found
    assert found[""] != found["AMP, "], "AMP has computed in float32"


@both
def test_exact_sums_lead_to_the_bits_of_one_process_whichever_mpi_it_is(ranks, asynchronous):
    told, _ = run(ranks, asynchronous)
    print(f"\n{ranks} ranks: one process: {told[0]['alone']}", end="")
    assert {one["alone"] for one in told} == {told[0]["hashes"]["exact, staged"]}


@both
def test_exact_sums_have_the_bits_of_the_host(ranks, asynchronous):
    told, _ = run(ranks, asynchronous)
    assert all(one["bits"] for one in told), told


@both
def test_nccl_does_what_it_is_called_for(ranks, asynchronous):
    told, _ = run(ranks, asynchronous)
    assert [one["wrong_calls"] for one in told] == [[]] * ranks


def test_every_rank_has_its_own_device(ranks):
    told, _ = run(ranks, False)
    count = _devices(ranks)
    assert [one["device"] for one in told] == [one["by_place"] for one in told] == [rank % count for rank
                                                                                    in range(ranks)]
    assert [one["flag"] for one in told] == [str(one["device"]) for one in told]


def _devices(ranks):
    """How many devices the ranks saw: as many as they are on the emulation."""
    return ranks if "FLEET_EMULATION" in os.environ else places.cuda_device_count()
