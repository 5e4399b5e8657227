"""Jobs in which every worker saves, and reads back what it saved, and in which servers resume before they serve."""

import json
import re
from pathlib import Path

import pytest

from tests.mpi.jobs import ROOT, run_job

OWN_FOLDER, RESUMES = ([*("-m", "fleet_mpi"), str(ROOT / "tests" / "scripts" / name)]
                       for name in ("own_folder.py", "server_resumes.py"))
NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "FLEET_MPI_THREADS": "1"}


def contents(folder):
    """{name: bytes} of the files of a folder, but for the manifest, in which saves have numbers."""
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file() and path.name[0] != "."}


def authors(folder):
    """The workers whose saves have left files in a folder."""
    notes = json.loads((folder / ".fleet_mpi.saves").read_text().partition("\n")[2])["notes"]
    return {words["worker"] for key, words in notes.items() if key.startswith("author of ")}


@pytest.mark.parametrize("ranks, words", ((4, ["sync"]), (5, ["async"]), (2, ["collective"])))
def test_every_worker_saves_into_its_own_folder_and_all_into_one(tmp_path, ranks, words):
    ended = run_job(ranks, [*OWN_FOLDER, tmp_path, *words], env={**NO_THREADS, "FLEET_MPI_SERVERS": "2"}, timeout=120)
    assert ended.code == 0, ended.story()
    workers = ranks if "collective" in words else ranks - 2
    found = sorted(re.findall(r"worker=(\d) models=3 params=9 difference=0$", ended.out, re.M))
    assert found == [str(worker) for worker in range(workers)], ended.story()
    for epoch in range(3):
        folder = tmp_path / f"epoch_{epoch}"
        assert len(contents(folder)) > 20 and not list(folder.glob("*.part")), ended.story()
        # Of one step: worker 0's, whoever was first. Asynchronous workers have no common step.
        assert authors(folder) == {0} or "async" in words, authors(folder)


def resuming_job(servers, folder, save, steps, load=0):
    """A job of some servers and two workers, roles from the environment."""
    endpoints = [f"127.0.0.1:{6170 + number}" for number in range(servers)]
    env = {**NO_THREADS, "PADDLE_PSERVER_ENDPOINTS": ",".join(endpoints), "PADDLE_TRAINERS": "2", "STEPS": steps,
           "LOAD": str(load), "MODEL_DIR": str(folder), "SAVE_DIR": str(save), "PADDLE_TRAINER_ID": "0"}
    roles = [{"PADDLE_TRAINER_ID": "1"},
             *({"PADDLE_TRAINING_ROLE": "PSERVER", "PADDLE_CURRENT_ENDPOINT": one} for one in endpoints)]
    ended = run_job(1, RESUMES, env=env, mpmd=[(1, RESUMES, role) for role in roles], timeout=120)
    assert ended.code == 0 and ended.out.count("served\n") == servers, ended.story()
    return contents(save)


def test_servers_that_load_before_they_serve_go_on_with_equal_bits_whatever_their_number(tmp_path):
    undisturbed = resuming_job(2, tmp_path / "none", tmp_path / "whole", "0,6")
    resuming_job(2, tmp_path / "none", tmp_path / "half", "0,3")
    assert resuming_job(3, tmp_path / "half", tmp_path / "on", "3,6", load=1) == undisturbed
    assert {"fc_0.w_0", "fc_0.w_0_moment1_0", "batch_norm_0.w_1", "@LR_DECAY_COUNTER@"} < set(undisturbed)
