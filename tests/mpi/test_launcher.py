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


def test_ranks_meet_and_get_their_arguments_and_who_serves(script, tmp_path):
    path = script("""
        import paddle
        words = (world.size, os.environ["FLEET_MPI_SERVERS"], *sys.argv[1:], paddle.__name__)
        sys.stdout.write(" ".join(map(str, (world.rank, *words))) + "\\n")
        """)
    ended = run_job(None, ["-m", "fleet_mpi", "-m", "paddle.distributed.launch", "--server_num=1", "--worker_num=2", path,
                           "--epochs", "3"], via="command", cwd=tmp_path)
    assert ended.code == 0, ended.story()
    assert sorted(ended.out.splitlines()) == [f"{rank} 3 1 --epochs 3 fleet_mpi.paddle" for rank in range(3)]


def test_an_unchanged_script_trains_with_a_server(tmp_path):
    ended = run_job(None, ["-m", "fleet_mpi.launch", "--server_num", "1", "--worker_num", "2",
                           ROOT / "tests" / "scripts" / "fleet_parameter_server.py"], via="command", cwd=tmp_path)
    assert ended.code == 0, ended.story()
    losses = re.findall(r"first=(\S+) last=(\S+)", ended.out)
    assert len(losses) == 2 and all(float(last) < float(first) / 10 for first, last in losses), ended.story()


ROLES = """
    from paddle.distributed import fleet
    role = fleet.PaddleCloudRoleMaker(is_collective={collective})
    fleet.init(role)
    words = (role.worker_num(), role.server_num(), "server" if role.is_server() else "worker", role.role_id())
    told = [os.environ.get(name) for name in ("TRAINING_ROLE", "PADDLE_TRAINER_ID", "FLAGS_selected_gpus", "POD_IP")]
    sys.stdout.write(" ".join(map(str, (world.rank, world.size, *words, *told))) + "\\n")
    """


def test_devices_make_collective_ranks_that_see_the_same_job_as_mpi(script, tmp_path):
    path = script(ROLES.format(collective=True))
    ended = run_job(None, ["-m", "fleet_mpi.launch", "--gpus=0,1", path], via="command", cwd=tmp_path,
                    env={"POD_IP": "of another role", "CUDA_VISIBLE_DEVICES": ""})
    assert ended.code == 0, ended.story()
    assert ended.out == "0 2 2 0 worker 0 None 0 0 None\n"
    logs = [(tmp_path / "log" / f"workerlog.{rank}").read_text() for rank in range(2)]
    assert logs[0] == ended.out and logs[1] == "1 2 2 0 worker 1 None 1 1 None\n"
    assert ended.err.startswith("-----------  Configuration Arguments -----------\ngpus: 0,1\nheter_worker_num: None\n")
    assert "launch train in CPU mode" in ended.err and "Local start 2 processes." in ended.err
    assert re.search(r"\|                PADDLE_TRAINER_ENDPOINTS          127.0.0.1:6170,127.0.0.1:6171        \|", ended.err)


def test_servers_and_workers_have_logs_of_their_own_which_a_second_job_writes_anew(script, tmp_path):
    path = script(ROLES.format(collective=False))
    for _ in range(2):
        ended = run_job(None, ["-m", "fleet_mpi.launch", "--server_num=1", "--worker_num=2", "--log_dir=mine", "--echo=first",
                               path], via="command", cwd=tmp_path)
        assert ended.code == 0, ended.story()
    assert ended.out == "1 3 2 1 worker 0 TRAINER 0 None None\n"
    logs = {log.name: log.read_text() for log in (tmp_path / "mine").iterdir()}
    assert logs == {"serverlog.0": "0 3 2 1 server 0 PSERVER None None 127.0.0.1\n", "workerlog.0": ended.out,
                    "workerlog.1": "2 3 2 1 worker 1 TRAINER 1 None None\n"}


@pytest.mark.parametrize("end, code, said", (
    ("raise ValueError('oh dear')", 1, "    ValueError: oh dear"), ("os._exit(85)", 85, "    my last words"),
    ("world.Abort(85)", 85, "    my last words"), ("os.kill(os.getpid(), signal.SIGKILL)", 4, "    my last words")))
def test_the_first_failure_ends_the_job_and_its_rank_and_last_words_come_first(script, tmp_path, end, code, said):
    path = script(f"""
        world.Barrier()
        if world.rank == 1:
            sys.stderr.write("my last words\\n")
            {end}
        time.sleep(60)
        """)
    ended = run_job(None, ["-m", "fleet_mpi.launch", "--nproc_per_node=3", "--print_config=False", path], via="command",
                    cwd=tmp_path, timeout=50)
    assert ended.code == code and "my last words" not in ended.out, ended.story()  # MPICH itself writes there
    lines = ended.err.splitlines()
    if "Abort" not in end:
        # A script's own Abort is told by MPI itself, which may end the rank before its last words can be shown.
        assert lines[0].startswith("fleet_mpi: rank 1 ") and 0 < lines.index(said) < 40, ended.story()
    assert lines[-1] == f"fleet_mpi: the job ended with code {code}; what ranks wrote is in log"
    assert "my last words\n" in (tmp_path / "log" / "workerlog.1").read_text()


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
