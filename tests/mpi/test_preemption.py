"""Jobs that are asked to stop: who is asked, in which mode; what they leave behind, and how they end."""

import json
import os
import re
import sys

import pytest

from tests.mpi.jobs import run_job

# Each worker raises USR1 itself, at a step of its own or never: no test must wait for the right moment. ``argv``: the
# mode, the folder, the steps in all, and {worker: after which step it is asked}.
TRAIN = """
import json, os, signal, sys, time
import numpy as np
from fleet_mpi import fluid
from fleet_mpi.examples import training
from fleet_mpi.fleet import preemption
from fleet_mpi.fleet.preemption import Preemption
from types import SimpleNamespace

mode, folder, steps, asked = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
options = SimpleNamespace(api="fleet", mode=mode, k_steps=3, staleness=2, model_dir=folder, strategy=[])
job = training.job(options)
x, y = (fluid.layers.data(name=name, shape=[size], dtype="float32") for name, size in (("x", 4), ("y", 1)))
hidden = fluid.layers.dropout(fluid.layers.fc(x, size=6), 0.3)
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, size=1), y))
job.minimize(fluid.optimizer.Adam(learning_rate=0.05), loss)
if job.is_server:
    sys.exit(job.serve())
exe = fluid.Executor(fluid.CPUPlace())
job.start(exe)
with job.keeping(exe) as keeping:
    first = keeping.resume()
    print("begins at", first, flush=True)
    for step in range(first, steps[job.worker]):
        drawn = np.random.default_rng([job.worker, step]).normal(size=(8, 5)).astype("float32")
        value, = exe.run(job.program, feed={"x": drawn[:, :4], "y": drawn[:, 4:]}, fetch_list=[loss])
        print("step", step, value.tobytes().hex(), flush=True)
        time.sleep(0.005)
        if step + 1 == asked.get(str(job.worker)):
            os.kill(os.getpid(), signal.SIGUSR1)
        if keeping.stopping(step + 1):
            break
print("ends with", keeping.stopped_after, flush=True)
job.finish(exe)
keeping.leave_if_stopped()
"""


@pytest.fixture
def train(tmp_path):
    """Run a job of two workers (and two servers); returns (its code, what each worker began and ended with)."""
    script = tmp_path / "train.py"
    script.write_text(TRAIN)

    def train(mode, steps, asked, via="mpirun"):
        ranks = 2 if mode == "collective" else 4
        words = [script, mode, tmp_path / "model", json.dumps(steps), json.dumps(asked)]
        ended = run_job(ranks, words, env={"FLEET_MPI_SEED": "3"}, timeout=100, cwd=tmp_path, via=via)
        story = ended.story()
        told = [re.findall(r"^(?:begins at|ends with) (\w+)$", rank.out, re.M) for rank in ended.ranks]
        train.losses = [found for rank in ended.ranks for found in re.findall(r"^step (\d+) (\w+)$", rank.out, re.M)]
        return ended.code, [pair for pair in told if pair], story
    return train


def saved(tmp_path):
    """{file: content} of the one version there is."""
    version, = (tmp_path / "model").iterdir()
    return version.name, {path.name: path.read_bytes() for path in version.iterdir()}


@pytest.mark.parametrize("mode", ("sync", "collective", "bounded_staleness"))
def test_one_worker_that_is_asked_stops_all_after_the_same_step_and_the_job_comes_back(train, tmp_path, mode):
    code, told, story = train(mode, [300, 300], {"1": 20})
    assert code == 75, story
    (_, step), (_, other) = told
    assert step == other and 20 <= int(step) <= 40, story
    name, files = saved(tmp_path)
    assert name == f"step-{step}" and json.loads(files["__steps__"]) == [int(step)] * 2
    assert "fc_0.w_0" in files and "fc_0.w_0_moment1_0" in files
    code, told, story = train(mode, [60, 60], {})
    assert code == 0 and told == [[step, "None"]] * 2, story


@pytest.mark.parametrize("mode", ("sync", "collective"))
def test_a_job_that_comes_back_drops_out_what_it_would_have_dropped_out(train, tmp_path, mode):
    code, _, story = train(mode, [45, 45], {})
    whole = train.losses
    assert code == 0 and len(whole) == 90, story
    code, told, story = train(mode, [300, 300], {"1": 20})
    stopped = train.losses
    assert code == 75 and int(told[0][1]) < 45, story
    code, _, story = train(mode, [45, 45], {})
    assert code == 0 and sorted(stopped + train.losses) == sorted(whole), story


@pytest.mark.parametrize("mode", ("async", "geo"))
def test_workers_that_do_not_wait_for_each_other_stop_where_they_are_and_go_on_there(train, tmp_path, mode):
    code, told, story = train(mode, [100_000, 100_000], {"0": 20})
    assert code == 75, story
    steps = [step for _, step in told]
    assert steps[0] == "20" and json.loads(saved(tmp_path)[1]["__steps__"]) == [int(step) for step in steps], story
    code, told, story = train(mode, [int(step) + 5 for step in steps], {})
    assert code == 0 and told == [[step, "None"] for step in steps], story


def test_a_worker_that_was_done_has_nothing_to_do_in_the_job_that_comes_back(train, tmp_path):
    code, told, story = train("sync", [300, 5], {"0": 20})
    assert code == 75 and told[1] == ["0", "None"], story
    step = told[0][1]
    assert json.loads(saved(tmp_path)[1]["__steps__"]) == [int(step), None]
    code, told, story = train("sync", [60, 60], {})
    assert code == 0 and told == [[step, "None"], [str(sys.maxsize), "None"]], story


def test_where_the_worker_that_saves_is_done_the_others_train_to_their_end(train, tmp_path):
    code, told, story = train("sync", [5, 100], {"1": 20})
    assert code == 0 and told == [["0", "None"]] * 2, story
    assert not (tmp_path / "model").exists() and "worker 0, which would save, is done" in story, story


def test_the_launcher_ends_with_the_code_that_asks_for_another_try(train, tmp_path):
    code, _, story = train("sync", [300, 300], {"1": 20}, via="launch")
    assert code == 75, story
    assert os.listdir(tmp_path / "model")
