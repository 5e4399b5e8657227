"""Jobs whose ranks are on two hosts, with a network between them, give the bits they give on one."""

import re
from pathlib import Path

import pytest
from jobs import run_job

STEPS = Path(__file__).parents[1] / "slurm" / "steps.py"
SEED = {"FLEET_MPI_SEED": "11"}
WIDTH, STEP_COUNT = 50_000, 10


@pytest.mark.parametrize("ranks_per_host, words", [(2, []), (1, ["--collective"])], ids=["servers", "collective"])
def test_a_job_over_two_hosts_trains_over_the_network_to_the_bits_of_one_host(hosts, tmp_path, ranks_per_host, words):
    def argv(kind):
        return [STEPS, "--width", WIDTH, "--steps", STEP_COUNT, "--model-dir", tmp_path / kind / "model", "--result-dir",
                tmp_path / kind / "result", "--stacks-after", 90, *words]  # a job that hangs shows where

    before = hosts.crossed()
    over_two = run_job(None, argv("two"), via="command", python=hosts.command(ranks_per_host), cwd=tmp_path, timeout=120,
                       env={**SEED, **hosts.environment()})
    assert over_two.code == 0, over_two.story()
    crossed = hosts.crossed() - before
    on_one = run_job(2 * ranks_per_host, argv("one"), env=SEED, cwd=tmp_path)
    assert on_one.code == 0, on_one.story()
    assert model(over_two) == model(on_one)
    # Each step moves a gradient and parameters, or two gradients, between the hosts.
    assert crossed > STEP_COUNT * 4 * WIDTH, f"only {crossed} bytes went over the cable"


def model(ended):
    """What worker 0 says the model is."""
    return re.search(r"model (\w{64})", ended.out)[1]


def test_a_rank_that_fails_on_another_host_ends_the_job_and_says_where(hosts, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import socket, sys\nfrom fleet_mpi import cluster\ncluster.join('worker')\n"
                      f"sys.exit(7 if socket.gethostname() == {hosts.names[1]!r} else cluster.current().barrier())\n")
    ended = run_job(None, [script], via="command", python=hosts.command(1), cwd=tmp_path, timeout=120,
                    env=hosts.environment())
    assert ended.code == 7, ended.story()
    assert re.search(rf"rank 1 \(worker 1, host {hosts.names[1]}\): exit code 7", ended.err), ended.story()
