"""Jobs whose ranks are on two hosts, with a network between them, give the bits they give on one."""

import re
from pathlib import Path

import pytest

from tests.mpi.jobs import run_job

STEPS = Path(__file__).parents[1] / "slurm" / "steps.py"
SEED = {"FLEET_MPI_SEED": "11"}
WIDTH, STEP_COUNT = 50_000, 10


@pytest.mark.parametrize("ranks_per_host, words", [(2, []), (1, ["--collective"])], ids=["servers", "collective"])
def test_a_job_over_two_hosts_trains_over_the_network_to_the_bits_of_one_host(hosts, tmp_path, ranks_per_host, words):
    def argv(kind):
        return [STEPS, "--width", WIDTH, "--steps", STEP_COUNT, "--model-dir", tmp_path / kind / "model",
                "--result-dir",
                tmp_path / kind / "result", "--stacks-after", 90, *words]  # a job that hangs shows where

    before = hosts.crossed()
    over_two = run_job(None, argv("two"), via="command", python=hosts.command(ranks_per_host), cwd=tmp_path,
                       timeout=120,
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
    script.write_text("import socket, sys\nfrom fleet_mpi.ranks import cluster\ncluster.join('worker')\n"
                      f"sys.exit(7 if socket.gethostname() == {hosts.names[1]!r} else cluster.current().barrier())\n")
    ended = run_job(None, [script], via="command", python=hosts.command(1), cwd=tmp_path, timeout=120,
                    env=hosts.environment())
    assert ended.code == 7, ended.story()
    assert re.search(rf"rank 1 \(worker 1, host {hosts.names[1]}\): exit code 7", ended.err), ended.story()


FROZEN = """
import os, signal, socket, subprocess, sys, time
from fleet_mpi.ranks import cluster
job = cluster.join("worker" if int(os.environ.get("PMIX_RANK", os.environ.get("PMI_RANK"))) else "server")
time.sleep(1)
if socket.gethostname() == sys.argv[1]:
    here = [int(word) for word in subprocess.check_output(["ip", "netns", "pids", sys.argv[1]]).split()]
    for process in [*(one for one in here if one != os.getpid()), os.getpid()]:
        try:
            os.kill(process, signal.SIGSTOP)
        except ProcessLookupError:
            pass
time.sleep(100)  # computes, or serves: nobody waits for the other host
"""


def test_a_host_that_freezes_as_a_whole_is_named_within_the_deadline(hosts, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(FROZEN)
    try:
        ended = run_job(None, [script, hosts.names[1]], via="command", python=hosts.command(2), cwd=tmp_path,
                        timeout=20,
                        env={**hosts.environment(), "FLAGS_rpc_deadline": "4000"})
    finally:
        hosts.kill_all()
    # Whether mpirun itself ends while its own part of the other host is frozen is not ours: the sentence is.
    assert ended.code in (5, None), ended.story()
    assert re.search(rf"rank 0 \(server 0, host {hosts.names[0]}\): Stalled: nothing was heard of host "
                     rf"{hosts.names[1]} for 4 s "
                     rf".*worker 1 \(rank 2, host {hosts.names[1]}\)", ended.err), ended.story()
