"""The examples as jobs: every mode, through the transpiler and both fleets, begun by mpirun and by our launcher."""

import itertools
import json
import re
import shlex
import subprocess
import sys

import pytest

from fleet_mpi.examples import training
from tests.mpi.jobs import clean_environment, run_job

# Ranks take a second to start, so one job runs many trainings, each in programs and a scope of its own.
ONE_AFTER_THE_OTHER = """
import importlib, json, sys
from fleet_mpi import fluid

for example, *options in json.loads(sys.argv[1]):
    module = importlib.import_module("fleet_mpi.examples." + example)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \\
            fluid.scope_guard(fluid.Scope()):
        code = module.main(options)
    print("ended:", code, example, *options, flush=True)
    if code:
        sys.exit(code)
"""
DRAWN = {"FLEET_MPI_SEED": "7", "DATA_HOME": "/nonexistent"}


def run_all(folder, trainings, ranks=3, **more):
    """One job, with a server and two workers unless they are all workers; every training must end well on every
    rank."""
    path = folder / "trainings.py"
    path.write_text(ONE_AFTER_THE_OTHER)
    ended = run_job(ranks, [path, json.dumps(trainings)], env={**DRAWN, "FLEET_MPI_SERVERS": "1", **more}, timeout=200)
    assert ended.code == 0, ended.story()
    expected = [f"ended: 0 {' '.join(words)}" for words in trainings]
    for rank in ended.ranks:
        assert [line for line in rank.out.splitlines() if line.startswith("ended:")] == expected, ended.story()
    return ended


def rotating():
    """Every mode once, each with the next way to train."""
    return zip(itertools.cycle(training.APIS), training.MODES)


def test_fit_a_line_converges_in_every_mode_and_every_way(tmp_path):
    ended = run_all(tmp_path, [["fit_a_line", "--api", api, "--mode", mode]
                               for api, mode in itertools.product(training.APIS, training.MODES)])
    for worker in (0, 1):
        reached = re.findall(rf"^worker {worker}: pass \d+: mean loss (\S+), .*: converged$", ended.out, re.M)
        assert len(reached) == 18 and max(map(float, reached)) < 20, ended.story()
    errors = re.findall(r"^worker 0: test: 102 prices it never saw are missed by (\S+) ", ended.out, re.M)
    assert len(errors) == 18 and max(map(float, errors)) < 4, ended.story()
    assert len(re.findall(r"; 1 server\(s\) took [\d,]+ pushes of 128 bytes from this worker",
                          ended.out)) == 18, ended.story()


def test_digits_are_recognised_in_every_mode_and_words_foretold(tmp_path):
    words = ["word2vec", "--passes", "1", "--batches", "30", "--learning-rate", "0.01"]
    common = ["--samples", "600", "--batch-size", "32", "--test-samples", "200", "--good-accuracy", "0.5"]
    run_all(tmp_path,
            [words, *(["recognize_digits", "--api", api, "--mode", mode, *common] for api, mode in rotating())])


def test_wide_and_deep_tells_clicks_from_the_rest_in_every_mode(tmp_path):
    common = ["--samples", "3000", "--test-samples", "1000", "--batch-size", "32", "--k-steps", "8"]
    ended = run_all(tmp_path, [["wide_and_deep", "--api", api, "--mode", mode, *common] for api, mode in rotating()])
    tested = [re.findall(rf"^worker {worker}: test: (auc 0\.\d+ .*)$", ended.out, re.M) for worker in (0, 1)]
    # Both workers tell what all have counted together.
    assert len(tested[0]) == 6 and tested[0] == tested[1], ended.story()
    assert all(float(line.split()[1]) > 0.6 for line in tested[0]), ended.story()


SMALL = (["fit_a_line"],
         ["recognize_digits", "--samples", "1000", "--batch-size", "32", "--test-samples", "200", "--good-accuracy",
          "0.5"],
         ["word2vec", "--passes", "1", "--batches", "30", "--learning-rate", "0.01"],
         ["wide_and_deep", "--samples", "2001", "--test-samples", "601", "--batch-size", "32"],
         ["resnet", "--batch-size", "4", "--passes", "6", "--learning-rate", "0.02"])


def test_every_example_trains_collectively_and_one_in_every_way(tmp_path):
    ways = [(api, SMALL[0]) for api in training.APIS] + list(zip(itertools.cycle(training.APIS), SMALL[1:]))
    ended = run_all(tmp_path, [[*words, "--mode", "collective", "--api", api] for api, words in ways], ranks=2)
    # What two workers tell of the values that they have in common is the same.
    for told in (r"pass \d+: (mean loss .*)", r"(pass \d+: test accuracy .*)", r"test: (auc .*)",
                 r"(loss \S+ in the first pass.*)"):
        first, second = (re.findall(rf"^worker {number}: {told}$", ended.out, re.M) for number in (0, 1))
        assert first and first == second, ended.story()


SWITCHES = (["recompute"], ["localsgd", "localsgd_configs.k_steps=2"], ["sync_batch_norm", "fp16_allreduce"])


def test_resnet_trains_on_four_ranks_by_switches_of_the_strategy(tmp_path):
    common = ["resnet", "--batch-size", "4", "--passes", "6", "--learning-rate", "0.02"]
    ended = run_all(tmp_path, [[*common, *(word for switch in switches for word in ("--strategy", switch))]
                               for switches in SWITCHES], ranks=4)
    assert len(re.findall(r"^\[Epoch 5, batch 0\] loss: ", ended.ranks[0].out, re.M)) == len(SWITCHES), ended.story()


def test_the_launcher_starts_a_collective_example():
    ended = run_job(None, ["-m", "fleet_mpi.launch", "--gpus=0,1", "--log_dir=", "-m", "fleet_mpi.examples.fit_a_line"],
                    via="command", env=DRAWN)
    assert ended.code == 0, ended.story()
    assert "all-reduce: exact (in rank order), 2 workers" in ended.err, ended.story()


def test_examples_with_tables_for_any_id_train_in_the_modes_that_have_them(tmp_path):
    clicks = ["wide_and_deep", "--table", "growing", "--samples", "3000", "--batch-size", "100",
              "--test-samples", "500"]
    words = ["word2vec", "--negatives", "4", "--batches", "60", "--passes", "1", "--learning-rate", "0.01"]
    first = ["wide_and_deep", "--variant", "first", "--samples", "80"]
    ended = run_all(tmp_path, [[*example, "--mode", mode, "--api", api] for example, mode, api in (
        (clicks, "sync", "fleet2"), (clicks, "async", "fleet2"), ([*clicks, "--k-steps", "8"], "geo", "transpiler"),
        (words, "sync", "fleet"),
        (words, "half_async", "transpiler"), (first, "async", "fleet"), (first, "sync", "transpiler"))])
    tested = re.findall(r"^worker 0: test: auc (\S+) ", ended.out, re.M)
    assert len(tested) == 3 and min(map(float, tested)) > 0.6, ended.story()


@pytest.mark.parametrize("example", ("fit_a_line", "wide_and_deep"))
def test_the_launcher_starts_an_example(example):
    options = {"fit_a_line": ["--mode", "geo"], "wide_and_deep": ["--samples", "2000", "--batch-size", "50"]}[example]
    ended = run_job(None, ["-m", "fleet_mpi.launch", "--server_num", "1", "--worker_num", "2", "-m",
                           f"fleet_mpi.examples.{example}", *options], via="command", env=DRAWN)
    assert ended.code == 0, ended.story()
    assert "worker 0: " in ended.out and "worker 1: " in ended.out, ended.story()


def variables(role, number, **more):
    """The variables of the oldest guide: its two machines' addresses, one server, two workers."""
    return {"PADDLE_PSERVER_PORT": "6174", "PADDLE_PSERVER_IPS": "192.168.1.2", "PADDLE_TRAINERS": "2",
            "PADDLE_TRAINER_ID": str(number), "PADDLE_TRAINING_ROLE": role, **more}


def test_fit_a_line_takes_the_variables_of_the_oldest_guide():
    words = ["-m", "fleet_mpi.examples.fit_a_line"]
    # As the guide has it: the worker's variable is misspelt, and names another server than the server does.
    workers = [variables("TRAINER", number, PADDLE_PSERVER_IPS="192.168.1.3", PADDLE_CURRENT_IPP="192.168.1.3",
                         PADDLE_CURRENT_IP="") for number in (0, 1)]
    ended = run_job(1, words, env={**DRAWN, **variables("PSERVER", 1, PADDLE_CURRENT_IP="192.168.1.2")},
                    mpmd=[(1, words, told) for told in workers])
    assert ended.code == 0, ended.story()
    assert "Server listening on 192.168.1.2:6174" in ended.ranks[0].err, ended.story()
    assert ": converged" in ended.ranks[1].out and ": converged" in ended.ranks[2].out, ended.story()


def test_begun_by_hand_it_tells_the_line_that_works():
    by_hand = subprocess.run([sys.executable, "-m", "fleet_mpi.examples.fit_a_line"], capture_output=True, text=True,
                             timeout=60, env={**clean_environment(), **DRAWN, **variables(
                                 "PSERVER", 1, PADDLE_CURRENT_IP="192.168.1.2")})
    assert by_hand.returncode == 3, by_hand.stderr
    line = next(line for line in by_hand.stderr.splitlines() if " : -np 1 " in line)
    ended = subprocess.run(shlex.split(line), capture_output=True, text=True, timeout=60,
                           env={**clean_environment(), **DRAWN})
    assert ended.returncode == 0, line + ended.stderr
    assert ended.stdout.count(": converged") == 2, ended.stdout
