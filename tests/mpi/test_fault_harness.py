"""The fault harness tells the truth: what it draws, whom it takes for blamed, what it finds left, what it calls
wrong."""

import os
import subprocess
import sys
import time

import pytest

from tests.mpi.faults import naming, report, run, traces
from tests.mpi.faults.expected import expected
from tests.mpi.faults.trial import AXES, COLLECTIVE, DOORS, MODES, Trial, draw, has_door, makes_sense

KILLED = Trial(0, "kill", "last worker", "step", "sync", "fleetrun -np", 1, 2, 7)


# ---------------------------------------------------------------------- what is drawn

def test_a_fault_depends_on_seed_and_number_alone():
    assert draw(1, 5) == draw(1, 5)
    assert len({draw(seed, 5)[1:] for seed in range(20)}) > 10


def test_everything_is_drawn_and_the_judge_knows_all_of_it():
    drawn = [draw("all", number) for number in range(600)]
    for axis, values in AXES.items():
        assert {getattr(trial, axis) for trial in drawn} == set(values)
    assert {(trial.door, trial.mode) for trial in drawn} == {
        (door, mode) for door in DOORS for mode in MODES if has_door(KILLED._replace(mode=mode), door)}
    for trial in drawn:
        assert makes_sense(trial) and expected(trial, 6).within_s <= 16
        assert (trial.servers == 0) == (trial.mode in COLLECTIVE) and 0 <= trial.rank < trial.ranks


# ---------------------------------------------------------------------- who is named

OWN = "fleet_mpi: rank 2 (worker 1, host a, step 7): ValueError: asked to fail\n"
BY_SERVER = ("fleet_mpi: rank 0 (server 0, host a, step 3): Stalled: server 0 (rank 0, host a): the others have waited "
             "6.0 s for worker 1 (rank 2, host a) (FLAGS_rpc_deadline sets it in ms)\n")
BY_LAUNCHER = "fleet_mpi: rank 2 on a was killed by signal 9 (SIGKILL)\n"
OF_ANOTHER = "fleet_mpi: rank 1 (worker 0, host a, step 3): Stalled: no answer from server 0 (rank 0, host a)\n"
OF_BOTH = "fleet_mpi: rank 0 (worker 0, host a): Stalled: the transfer with worker 1 (rank 2), worker 0 (rank 1)\n"
BY_OPEN_MPI = "prterun noticed that process rank 2 with PID 29463 on node a exited on\nsignal 9 (Killed).\n"
HEADING = "fleet_mpi: rank 0 (server 0) on a fails; the last words in log/serverlog.0:\n    "
NOISE = "fleet_mpi: the job ended with code 4; what ranks wrote is in log\n  Process rank 1 prints this\n"


@pytest.mark.parametrize("text, who, role", (
    (OWN, naming.RIGHT, True), (HEADING + BY_SERVER, naming.RIGHT, True), (BY_SERVER, naming.RIGHT, True),
    (BY_LAUNCHER, naming.RIGHT, False),
    (f"    {OWN}{NOISE}", naming.RIGHT, True), (BY_OPEN_MPI, naming.RIGHT, False), (NOISE, naming.NOBODY, False),
    (OF_ANOTHER, naming.WRONG, False), (BY_SERVER + OF_ANOTHER, naming.WRONG, True), (OF_BOTH, naming.SEVERAL, False),
    (OF_ANOTHER + BY_OPEN_MPI, naming.WRONG, False), (OWN.replace("worker 1", "worker 11"), naming.RIGHT, False)))
def test_who_is_blamed(text, who, role):
    assert naming.blame(text, 2, "worker 1")[:2] == (who, role)


# ---------------------------------------------------------------------- what is left

@pytest.fixture
def sleeping(tmp_path):
    """A process of a job with this folder, and one of another job."""
    words = [sys.executable, "-S", "-c", "import time; time.sleep(100)"]
    both = [subprocess.Popen(words, env={**os.environ, traces.MARK: str(folder)})
            for folder in (tmp_path, tmp_path / "other")]
    yield both
    for process in both:
        process.kill()
        process.wait()


def test_processes_of_a_job_are_found_and_ended_and_no_others(tmp_path, sleeping, monkeypatch):
    monkeypatch.setattr(traces, "_LEAVING_S", 0.2)
    mine, other = sleeping
    assert list(traces.left(str(tmp_path))) == [mine.pid]
    assert "state S" in traces.describe(mine.pid)
    traces.end(str(tmp_path))
    assert mine.wait(10) == -9 and other.poll() is None
    assert traces.left(str(tmp_path)) == {}


@pytest.mark.skipif(not traces.can_mount(), reason="a /dev/shm for one job alone needs root")
def test_segments_of_a_job_are_found_and_none_of_others(tmp_path):
    name = f"fault-harness-{os.getpid()}"
    command = traces.with_own_segments(["sh", "-c", f"touch /dev/shm/{name}; sleep 0.5"])
    job = subprocess.Popen(command, env={**os.environ, traces.MARK: str(tmp_path)})
    while (segments := traces.open_segments(str(tmp_path), job)) is None and job.poll() is None:
        time.sleep(0.01)
    job.wait(10)
    assert os.listdir(segments) == [name]
    os.close(segments)
    assert not os.path.exists(f"/dev/shm/{name}")


# ---------------------------------------------------------------------- what is wrong

SEEN = {"right": naming.Blame(naming.RIGHT, True, ()), "rank": naming.Blame(naming.RIGHT, False, ()),
        "nobody": naming.Blame(naming.NOBODY, False, ()), "wrong": naming.Blame(naming.WRONG, False, ())}


@pytest.mark.parametrize("change, seconds, code, seen, wrong", (
    ({}, 1, 4, "right", []),
    ({}, 5.1, 4, "right", ["late"]),
    ({}, 1, 1, "right", ["code 1"]),
    ({}, 1, 4, "rank", ["role not named"]),
    ({}, 1, 0, "nobody", ["code 0", "nobody named"]),
    ({"launcher": "mpirun"}, 1, 137, "wrong", ["wrong rank named"]),
    ({"launcher": "mpirun", "phase": "start"}, 1, 9, "nobody", []),
    ({"launcher": "mpirun", "phase": "start"}, 1, 9, "wrong", ["wrong rank named"]),
    ({"phase": "init"}, 1, 4, "rank", []),
    ({"fault": "stop"}, 10.9, 5, "right", []),
    ({"fault": "stop"}, 11.1, 5, "right", ["late"]),
    ({"fault": "sys.exit(0)"}, 1, 0, "nobody", []),
    ({"fault": "sys.exit(0)"}, 1, 0, "wrong", ["blames wrong"]),
    ({"fault": "sys.exit(0)", "phase": "save"}, 1, 0, "nobody", []),
    ({"fault": "sys.exit(0)", "phase": "save", "role": "first worker"}, 1, 0, "nobody", ["code 0", "nobody named"]),
    ({"fault": "sys.exit(0)", "mode": "fast"}, 1, 0, "nobody", ["code 0", "nobody named"]),
    ({"role": "launcher"}, 1, -9, "nobody", [])))
def test_what_is_wrong(change, seconds, code, seen, wrong):
    assert run.judge(KILLED._replace(**change), 6, True, seconds, code, SEEN[seen], 1.0)[1] == wrong


def test_a_job_that_hangs_is_ended_with_the_places_where_it_hung(monkeypatch):
    waiting = "import injection, time; injection.note('at', repr(time.time())); time.sleep(100)"
    monkeypatch.setattr(run.Job, "_command", lambda job, found: [sys.executable, "-c", waiting])
    monkeypatch.setattr(run, "_HANGS_S", 1)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "2")
    monkeypatch.setattr(run, "clean_environment", lambda: dict(os.environ))
    result = run.run(KILLED, 1)
    assert (result.ended, result.wrong) == (False, ["hangs"])
    assert "rank 2: state S" in result.words and "Python stack of stack.2" in result.words, result.words


def test_a_job_that_ends_in_order_has_nothing_wrong():
    result = run.run(Trial(0, "sys.exit(0)", "last worker", "end", "sync", "mpirun", 1, 2, 2), 30)
    assert (result.wrong, result.code, result.named) == ([], 0, "nobody"), result.words


def test_results_are_kept_and_shown_with_their_causes(tmp_path):
    kept = report.Kept(tmp_path / "out")
    result = run.Result(KILLED, True, 1.0, 4, "rank", [], None, [], [], "words")
    kept.add(result)
    kept.add(result._replace(trial=KILLED._replace(number=1), wrong=["late"]))
    again = kept.read()
    assert again[0] == result._replace(words="") and "words" in (tmp_path / "out" / "1.txt").read_text()
    text = report.summary(again.values(), "run {}".format)
    assert "2 faults: 1 as they must be, 1 not" in text
    assert "late: kill of last worker at step" in text and "run 1" in text
