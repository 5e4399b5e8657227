"""The doctor for real: alone, under mpirun, as singletons, and beside a rank that does not come."""

import json
import os

from tests.mpi.jobs import run_job

COMMAND = ["-m", "fleet_mpi", "doctor", "--json"]
SINGLETON = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_TASKS_PER_NODE": "2"}


def told(text):
    """{check: (state, text)} of the one report in a text, and the facts of its ranks."""
    report = json.loads(text)
    return {check["name"]: (check["state"], check["text"]) for check in report["checks"]}, report["ranks"]


def test_alone_two_ranks_meet_and_nothing_fails(tmp_path):
    ended = run_job(None, COMMAND, via="command", cwd=tmp_path)
    assert ended.code == 0, ended.story()
    checks, ranks = told(ended.out)
    assert checks["ranks meet"][0] == "ok" and "two ranks, started by" in checks["ranks meet"][1]
    assert checks["MPI library"][0] == checks["one MPI"][0] == checks["rename"][0] == "ok"
    assert ranks[0]["level"] == "multiple" and ranks[0]["cuda_aware_by"]
    assert os.listdir(tmp_path) == []


def test_under_mpirun_the_first_rank_speaks_for_all(tmp_path):
    ended = run_job(3, COMMAND, cwd=tmp_path)
    assert ended.code == 0, ended.story()
    checks, ranks = told(ended.ranks[0].out)
    assert [rank.out for rank in ended.ranks[1:]] == ["", ""]
    assert [rank["rank"] for rank in ranks] == [0, 1, 2] and len({rank["pid"] for rank in ranks}) == 3
    assert checks["ranks meet"][0] == "ok" and checks["ranks meet"][1].startswith("3 ranks of ")


def test_of_singletons_one_says_so(tmp_path):
    first, second = (run_job(None, COMMAND, via="command", cwd=tmp_path, env={**SINGLETON, "SLURM_PROCID": number})
                     for number in "01")
    assert (first.code, second.code, second.out) == (3, 0, ""), first.story() + second.story()
    checks, _ = told(first.out)
    assert checks["ranks meet"][0] == "fail" and checks["ranks meet"][1].startswith("2 singletons instead of 2 ranks")
    assert checks["MPI library"][0] == "ok"


def test_a_rank_that_does_not_come_is_named_in_time(tmp_path):
    absent = (1, ["-c", "import time; time.sleep(60)"], {})
    ended = run_job(1, [*COMMAND, "--deadline", "6"], mpmd=[absent], cwd=tmp_path, timeout=55)
    assert ended.code not in (0, None), ended.story()
    checks, _ = told(ended.ranks[0].out)
    assert checks["ranks meet"][0] == "fail" and "rank 1" in checks["ranks meet"][1], ended.story()
