"""The launcher over real ranks: roles, exit codes, and a rank that is killed is named."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from jobs import ROOT, clean_environment, mpirun, run_job


@pytest.fixture
def script(tmp_path):
    """Write a script that has mpi4py's world as ``world``; gives its path."""
    def write(text):
        path = tmp_path / "train.py"
        path.write_text("import os, signal, sys, time\nfrom mpi4py import MPI\nworld = MPI.COMM_WORLD\n"
                        + textwrap.dedent(text))
        return str(path)
    return write


def test_ranks_meet_and_get_their_arguments_and_who_serves(script):
    path = script("""
        import paddle
        words = (world.size, os.environ["FLEET_MPI_SERVERS"], *sys.argv[1:], paddle.__name__)
        sys.stdout.write(" ".join(map(str, (world.rank, *words))) + "\\n")
        """)
    ended = run_job(None, ["-m", "fleet_mpi", "-m", "paddle.distributed.launch", "--server_num=1", "--worker_num=2", path,
                           "--epochs", "3"], via="command")
    assert ended.code == 0, ended.story()
    assert sorted(ended.out.splitlines()) == [f"{rank} 3 1 --epochs 3 fleet_mpi.paddle" for rank in range(3)]


def test_an_unchanged_script_trains_with_a_server(tmp_path):
    ended = run_job(None, ["-m", "fleet_mpi.launch", "--server_num", "1", "--worker_num", "2",
                           ROOT / "tests" / "scripts" / "fleet_parameter_server.py"], via="command", cwd=tmp_path)
    assert ended.code == 0, ended.story()
    losses = re.findall(r"first=(\S+) last=(\S+)", ended.out)
    assert len(losses) == 2 and all(float(last) < float(first) / 10 for first, last in losses), ended.story()


@pytest.mark.parametrize("rank", (0, 2))
def test_a_killed_rank_is_named_and_the_exit_code_is_4(script, rank):
    path = script(f"""
        world.Barrier()
        if world.rank == {rank}:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)
        """)
    ended = run_job(3, [path], via="launch", timeout=50)
    assert ended.code == 4, ended.story()
    assert ended.seconds < 40
    named = re.findall(r"fleet_mpi: rank (\d) on \S+ was killed by signal (\d+)", ended.err)
    assert named == [(str(rank), "9")], ended.story()


@pytest.mark.parametrize("end", ("os._exit(85)", "world.Abort(85)"))
def test_the_code_of_the_rank_that_failed_comes_back(script, end):
    path = script(f"""
        world.Barrier()
        if world.rank == 1:
            {end}
        time.sleep(60)
        """)
    ended = run_job(3, [path], via="launch", timeout=50)
    assert ended.code == 85, ended.story()
    assert "was killed" not in ended.err, ended.story()


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGINT))
def test_a_signal_to_the_launcher_ends_the_ranks(script, number):
    mpirun()
    path = script("""
        pids = world.gather(os.getpid())
        if world.rank == 0:
            print(*pids, flush=True)
        time.sleep(60)
        """)
    job = subprocess.Popen([sys.executable, "-m", "fleet_mpi.launch", "-np", "2", path], env=clean_environment(),
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        pids = job.stdout.readline().split()
        assert len(pids) == 2, job.communicate()
        job.send_signal(number)
        out, err = job.communicate(timeout=40)
    finally:
        job.kill()
    assert job.returncode == 128 + number, err
    deadline = time.monotonic() + 10  # the kernel ends a rank after its watcher
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        assert time.monotonic() < deadline, err
        time.sleep(0.01)
