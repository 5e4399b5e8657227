"""Who is who, over MPI: ranks join by every kind of role maker, and whatever goes wrong is named and ends all ranks."""

import shlex
import socket
import subprocess
import sys
import textwrap

import pytest

from tests.mpi.jobs import clean_environment, run_job

TOGETHER = """
    import sys

    import numpy as np
    from fleet_mpi import settings
    from fleet_mpi.ranks import cluster
    from fleet_mpi.fleet import metrics, role_makers
    from fleet_mpi.fleet.paddle2 import paddle_fleet

    cluster.share_seed()
    role = eval(sys.argv[1], vars(role_makers))
    role.generate_role()
    paddle_fleet._role_maker = role
    joined, workers = cluster.current(), role.worker_num()
    everyone = joined.all_gather([joined.rank, settings.get("FLEET_MPI_SEED")], "all")
    assert [rank for rank, _ in everyone] == [member.rank for member in joined.workers + joined.servers]
    assert len({seed for _, seed in everyone}) == 1 and everyone[0][1]
    assert joined.comm.size == joined.size == len(everyone)
    assert paddle_fleet.util.all_reduce(np.ones((2, 3), "float32"), "sum", "all").tolist() == [[joined.size] * 3] * 2
    rows = joined.all_gather(np.full((joined.index + 1, 2), joined.index), joined.role)
    assert [row.shape for row in rows] == [(index + 1, 2) for index in range(len(rows))]
    if role.is_worker():
        index = role.worker_index()
        assert metrics.acc(np.array([1.0 + index]), np.array([4.0])) == sum(range(1, workers + 1)) / (4 * workers)
        assert metrics.max(np.array([index])).tolist() == [workers - 1]
        assert metrics.min(np.array([index])).tolist() == [0]
        # The first worker has positives only, the others have negatives only: no worker alone has an area.
        counts = np.array([[0, 0, 4]]), np.array([[4, 0, 0]])
        assert metrics.auc(counts[0] * (index == 0), counts[1] * (index > 0)) == (1.0 if workers > 1 else 0.5)
        role.barrier_worker()
    role.barrier_all()
    # In one go: ranks mix.
    sys.stdout.write(f"{joined.role} {joined.index} {','.join(role.get_pserver_endpoints())}\\n")
    """

FAILING = """
    import sys, threading, time
    from fleet_mpi import errors
    from fleet_mpi.ranks import cluster

    def fail_in_thread():
        raise RuntimeError("boom")

    here = cluster.world()
    how = sys.argv[1] if here.rank == 2 else ""
    if how == "stay away":
        time.sleep(50)
    if sys.argv[1] == "twice":
        cluster.join("worker", 0)
    joined = cluster.join("server" if here.rank == 0 else "worker")
    joined.progress = 17
    cluster.at_exit(lambda: print("goodbye", flush=True))
    if how == "raise":
        raise ValueError("boom")
    if how == "diverge":
        raise errors.Diverged("boom")
    if how == "exit":
        exit(3)
    if how == "bare":
        raise SystemExit(3)
    if how == "thread":
        threading.Thread(target=fail_in_thread).start()
    if how == "stall":
        time.sleep(50)
    if how == "leave":
        exit(0)
    if sys.argv[1] != "leave":
        joined.barrier("all")
    """


@pytest.fixture
def script(tmp_path):
    """Write a script into the test's folder."""
    def script(text):
        (tmp_path / "train.py").write_text(textwrap.dedent(text))
        return str(tmp_path / "train.py")
    return script


@pytest.mark.parametrize("ranks, made, variables, expected", (
    (5, "MPISymetricRoleMaker()", {}, "s0 w0 s1 w1 s2"),
    (4, "PaddleCloudRoleMaker()", {"FLEET_MPI_SERVERS": "1"}, "s0 w0 w1 w2"),
    (3, "PaddleCloudRoleMaker(is_collective=True)", {}, "w0 w1 w2")))
def test_roles_come_from_ranks_and_all_ranks_work_together(script, ranks, made, variables, expected):
    ended = run_job(ranks, [script(TOGETHER), made], env=variables)
    assert ended.code == 0, ended.story()
    found = [rank.out.split() for rank in ended.ranks]
    assert " ".join(role[0] + index for role, index, *_ in found) == expected
    assert len({tuple(words[2:]) for words in found}) == 1


def test_roles_come_from_arguments_in_any_order_of_ranks(script):
    made = "UserDefinedRoleMaker({}, Role.{}, 2, ['a:1', 'b:1'])"
    path = script(TOGETHER)
    others = [(1, [path, made.format(*who)], {}) for who in ((1, "SERVER"), (0, "WORKER"), (0, "SERVER"))]
    ended = run_job(1, [path, made.format(1, "WORKER")], mpmd=others)
    assert ended.code == 0, ended.story()
    assert [rank.out for rank in ended.ranks] == [
        "worker 1 a:1,b:1\n", "server 1 a:1,b:1\n", "worker 0 a:1,b:1\n", "server 0 a:1,b:1\n"]


def test_the_line_that_a_process_begun_by_hand_prints_starts_the_job(script):
    described = {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "1", "PADDLE_TRAINERS_NUM": "2",
                 "PADDLE_PSERVERS_IP_PORT_LIST": "10.0.0.1:6001,10.0.0.2:6001"}
    alone = subprocess.run([sys.executable, script(TOGETHER), "PaddleCloudRoleMaker()"], capture_output=True, text=True,
                           timeout=60, env={**clean_environment(), **described})
    assert (alone.returncode, alone.stdout) == (3, ""), alone.stderr
    together = subprocess.run(shlex.split(alone.stderr.splitlines()[-1]), capture_output=True, text=True, timeout=60,
                              env={**clean_environment(), "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    assert together.returncode == 0, together.stderr
    assert sorted(line.rsplit(" ", 1)[0] for line in together.stdout.splitlines()) == [
        "server 0", "server 1", "worker 0", "worker 1"]


@pytest.mark.parametrize("how, code, said", (
    ("raise", 1, "rank 2 (worker 1, host {host}, step 17): ValueError: boom"),
    ("diverge", 7, "rank 2 (worker 1, host {host}, step 17): Diverged: boom"),
    ("exit", 3, "rank 2 (worker 1, host {host}, step 17): exit code 3"),
    ("thread", 1, "rank 2 (worker 1, host {host}, step 17): RuntimeError: boom"),
    ("stall", 5, "Stalled: barrier: worker 1 (rank 2, host {host}) did not come within 3 s"),
    ("stay away", 5, "Stalled: joining the job: rank 2 did not come within 3 s"),
    ("twice", 2, "rank 0 (host {host}) and rank 1 (host {host}) both say that they are worker 0")))
def test_a_failure_of_one_rank_ends_all_with_its_code_and_one_sentence(script, how, code, said):
    ended = run_job(4, [script(FAILING), how], env={"FLAGS_rpc_deadline": "3000"})
    assert ended.code == code and ended.seconds < 30, ended.story()
    sentences = [line for line in ended.err.splitlines() if line.startswith("fleet_mpi: rank ")]
    assert len(sentences) == 1 and said.format(host=socket.gethostname()) in sentences[0], ended.story()
    assert "goodbye" not in ended.ranks[2].out


def test_a_worker_that_leaves_in_order_says_goodbye_and_fails_nobody(script):
    ended = run_job(4, [script(FAILING), "leave"])
    assert ended.code == 0 and [rank.out for rank in ended.ranks] == ["goodbye\n"] * 4, ended.story()


def test_our_runner_sees_a_bare_system_exit(script):
    ended = run_job(4, ["-m", "fleet_mpi", script(FAILING), "bare"], env={"FLAGS_rpc_deadline": "20000"})
    assert ended.code == 3 and "step 17): exit code 3" in ended.err, ended.story()
