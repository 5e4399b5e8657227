"""The launcher over real ranks: roles, exit codes, and a rank that is killed is named."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from fleet_mpi.launch.mpirun import OPEN_MPI
from tests.mpi.jobs import ROOT, clean_environment, mpirun, run_job


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
    ended = run_job(None,
                    ["-m", "fleet_mpi", "-m", "paddle.distributed.launch", "--server_num=1", "--worker_num=2", path,
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
    assert re.search(r"\|                PADDLE_TRAINER_ENDPOINTS          127.0.0.1:6170,127.0.0.1:6171        \|",
                     ended.err)


def test_servers_and_workers_have_logs_of_their_own_which_a_second_job_writes_anew(script, tmp_path):
    path = script(ROLES.format(collective=False))
    for _ in range(2):
        ended = run_job(None,
                        ["-m", "fleet_mpi.launch", "--server_num=1", "--worker_num=2", "--log_dir=mine", "--echo=first",
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
        # A script's own Abort is told by MPI itself, which may end the rank's watcher before it has read the last
        # words.
        assert lines[0].startswith("fleet_mpi: rank 1 ") and 0 < lines.index(said) < 40, ended.story()
        assert "my last words\n" in (tmp_path / "log" / "workerlog.1").read_text()
    assert lines[-1] == f"fleet_mpi: the job ended with code {code}; what ranks wrote is in log"


@pytest.mark.parametrize("rank", (0, 2))
def test_a_killed_rank_is_named_and_the_exit_code_is_4(script, rank, tmp_path):
    path = script(f"""
        world.Barrier()
        if world.rank == {rank}:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)
        """)
    ended = run_job(3, [path], via="launch", timeout=50, cwd=tmp_path)
    assert ended.code == 4, ended.story()
    assert ended.seconds < 40
    named = re.findall(r"fleet_mpi: rank (\d) on \S+ was killed by signal (\d+)", ended.err)
    assert named == [(str(rank), "9")], ended.story()


@pytest.mark.parametrize("end, code, how", (
    ("os._exit(0)", 4, "ended in the middle of the job, with exit code 0"),
    ("os._exit(7)", 7, "ended with exit code 7"),
    ("os.kill(os.getpid(), signal.SIGTERM)", 4, "was killed by signal 15 (SIGTERM)")))
def test_how_a_rank_ended_is_said_once_and_mpiruns_box_is_not_shown(script, end, code, how, tmp_path):
    path = script(f"""
        world.Barrier()
        if world.rank == 1:
            {end}
        time.sleep(60)
        """)
    ended = run_job(3, [path], via="launch", timeout=50, cwd=tmp_path)
    assert ended.code == code, ended.story()
    said = [line for line in ended.err.splitlines() if line.startswith("fleet_mpi: rank ")]
    assert len(said) == 1 and said[0].startswith(f"fleet_mpi: rank 1 on {os.uname().nodename} {how}"), ended.story()
    assert "BAD TERMINATION" not in ended.out + ended.err and "prterun" not in ended.out + ended.err, ended.story()


def test_a_rank_killed_before_mpi_starts_ends_the_job_at_once(tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent("""
        import os, signal, time
        if os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK")) == "1":
            print(time.time(), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        from mpi4py import MPI
        """))
    ended = run_job(3, [tmp_path / "train.py"], via="launch", timeout=50, cwd=tmp_path)
    after = time.time() - float(ended.out)
    assert ended.code == 4 and after < 3, (after, ended.story())
    assert [line for line in ended.err.splitlines() if "rank 1 on" in line
            and "killed by signal 9" in line], ended.story()


@pytest.mark.parametrize("end", ("os._exit(85)", "world.Abort(85)"))
def test_the_code_of_the_rank_that_failed_comes_back(script, end, tmp_path):
    path = script(f"""
        world.Barrier()
        if world.rank == 1:
            {end}
        time.sleep(60)
        """)
    ended = run_job(3, [path], via="launch", timeout=50, cwd=tmp_path)
    assert ended.code == 85, ended.story()
    assert "was killed" not in ended.err, ended.story()


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGINT))
def test_a_signal_to_the_launcher_ends_the_ranks(script, number, tmp_path):
    mpirun()
    path = script("""
        pids = world.gather(os.getpid())
        if world.rank == 0:
            print(*pids, flush=True)
        time.sleep(60)
        """)
    job = subprocess.Popen([sys.executable, "-m", "fleet_mpi.launch", "-np", "2", path], env=clean_environment(),
                           cwd=tmp_path,
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


def shared_memory():
    """The names of MPI's segments on this machine."""
    return {name for name in os.listdir("/dev/shm") if name.startswith(("mpich_", "sm_segment"))}


def test_kill_9_of_the_launcher_ends_mpirun_and_all_ranks_and_leaves_nothing(script, tmp_path):
    mpirun()
    path = script("""
        mapped = [line.split("/")[-1].strip() for line in open("/proc/self/maps")
                  if "mpich_shm" in line or "sm_segment" in line]
        told = world.gather([os.getpid(), *mapped])
        if world.rank == 0:
            print(os.environ["FLEET_MPI_LAUNCH_DIR"], *sum(told, []), flush=True)
        time.sleep(60)
        """)
    job = subprocess.Popen([sys.executable, "-m", "fleet_mpi.launch", "-np", "3", path], env=clean_environment(),
                           cwd=tmp_path,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        folder, *words = job.stdout.readline().split()
        time.sleep(1)  # the launcher looks for segments every quarter of a second: those of a job so young may stay
    finally:
        job.kill()
    out, err = job.communicate(timeout=20)  # ends when no process has the pipes any more
    assert err.splitlines()[-1] == "fleet_mpi: the launcher was killed; its job has been ended", err
    pids, segments = [word for word in words if word.isdecimal()], {word for word in words if not word.isdecimal()}
    assert len(pids) == 3 and segments
    deadline = time.monotonic() + 10  # the kernel ends a rank after its watcher
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        assert time.monotonic() < deadline, err
        time.sleep(0.01)
    assert not segments & shared_memory() and not os.path.exists(folder), err


def test_a_killed_job_leaves_no_segment(script, tmp_path):
    path = script("""
        mapped = [line.split("/")[-1].strip() for line in open("/proc/self/maps")
                  if "mpich_shm" in line or "sm_segment" in line]
        if world.rank == 1:
            print(*mapped, flush=True)
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)
        """)
    ended = run_job(3, [path], via="launch", timeout=50, cwd=tmp_path)
    assert ended.code == 4 and ended.out.split(), ended.story()
    assert not set(ended.out.split()) & shared_memory(), ended.story()


def test_mpichs_segments_are_known_by_the_name_of_the_job_before_mpi_starts(tmp_path):
    """Ranks that are killed in MPI_Init have made memory that nobody has seen mapped."""
    if mpirun().family == OPEN_MPI:
        pytest.skip("of MPICH: Open MPI's mpirun removes its own")
    (tmp_path / "train.py").write_text(textwrap.dedent("""
        from fleet_mpi.ranks import arriving, watcher
        job = arriving.launcher_job()
        assert not watcher.segments_of_job(job)
        from mpi4py import MPI
        MPI.COMM_WORLD.Barrier()  # the line to mpirun still works
        if MPI.COMM_WORLD.rank == 0:
            print(job != "", watcher.segments("self") == watcher.segments_of_job(job) != set())
        MPI.COMM_WORLD.Barrier()
        """))
    ended = run_job(3, [tmp_path / "train.py"])
    assert (ended.code, ended.out) == (0, "True True\n"), ended.story()


def test_what_a_killed_mpirun_left_keeps_no_later_one_from_starting(tmp_path):
    """Open MPI names its session folder by its process number, and numbers come again."""
    if mpirun().family != OPEN_MPI or not os.path.exists("/proc/sys/kernel/ns_last_pid"):
        pytest.skip("of Open MPI on Linux")
    with open("/proc/sys/kernel/ns_last_pid") as file:
        last = int(file.read())
    for number in range(last, last + 2000):
        left = tmp_path / f"ompi.{number}"
        left.mkdir()
        (left / f"pmix.{os.uname().nodename.partition('.')[0]}.tool").touch()
    (tmp_path / "train.py").write_text("print('began')")
    ended = run_job(1, [tmp_path / "train.py"], via="launch", cwd=tmp_path, env={"TMPDIR": str(tmp_path)})
    assert (ended.code, ended.out, ended.err) == (0, "began\n", ""), ended.story()
