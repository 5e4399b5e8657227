"""The door over MPI: a plain numpy loop's bits by every rule, 1 to 4 servers; modes; fleetrun; ends and failures."""

import re
import textwrap

import pytest

from fleet_mpi.modes import MODES
from tests.mpi.jobs import ROOT, run_job
from tests.unit.door.plain_loop import ALL_RULES, by_numpy, digest

TRAINING = """
    import sys
    import numpy as np
    import fleet_mpi
    from tests.unit.door.plain_loop import ALL_RULES, digest, train

    servers, folder = int(sys.argv[1]), sys.argv[2]
    with fleet_mpi.join(servers=servers) as job:
        table = job.table("users", 3, 6000, init=("normal", 0, 1))
        params, server = train(job, ALL_RULES), job._declaring.server
        assert table.pull([[5999]]).shape == (1, 1, 3)
        job.save(folder)
        total = job.all_reduce({"sum": np.full(3, job.worker + 1.0)}, how="fast")["sum"]
        job.broadcast(total)
        job.barrier()
        print(job.role, job.worker, job.workers, job.servers, total[0], digest(params))
        ended = digest(params)
        server.push_pull(params)
        assert digest(params) != ended
        job.load(folder)
        assert digest(params) == ended
    """


@pytest.fixture(scope="module")
def expected():
    """What two workers come to, by numpy."""
    return digest(by_numpy(2, ALL_RULES))


@pytest.mark.parametrize("servers", (0, 1, 2, 3, 4))
def test_every_rule_has_the_bits_of_a_plain_loop(tmp_path, expected, servers):
    ended = run_job(servers + 2, [_script(tmp_path, TRAINING), servers, tmp_path / "model"],
                    env={"PYTHONPATH": str(ROOT)}, timeout=400)
    assert ended.code == 0, ended.story()
    assert [rank.out for rank in ended.ranks] == [""] * servers + [
        f"worker {worker} 2 {servers} 3.0 {expected}\n" for worker in range(2)], ended.story()


ENDINGS = """
    import os, signal, sys, time
    import numpy as np
    import fleet_mpi

    job = fleet_mpi.join(2, serve=False)
    if job.role == "server":
        if sys.argv[1] == "server is killed" and job.server == 1:
            time.sleep(1)
            os.kill(os.getpid(), signal.SIGKILL)
        if sys.argv[1] != "server does not serve":
            job.serve()
    else:
        params = {"w": np.zeros(30000)}
        server = job.parameter_server(params)
        if sys.argv[1] == "worker is killed" and job.worker == 1:
            time.sleep(1)
            os.kill(os.getpid(), signal.SIGKILL)
        if sys.argv[1] != "nothing is used":
            server.push_pull({"w": np.ones(30000)})
            if sys.argv[1] == "one has more data" and job.worker == 1:
                server.push_pull({"w": np.ones(30000)})
        if sys.argv[1] == "worker raises" and job.worker == 1:
            raise ArithmeticError("on purpose")
    print("ends", job.role)
    """


@pytest.mark.parametrize("how, code, sentence", (
    ("nothing is used", 0, ""),
    ("one has more data", 0, ""),
    ("worker raises", 1, "worker 1, host .*ArithmeticError: on purpose"),
    ("worker is killed", None, "rank 3.*SIGKILL|rank 3.*killed|signal 9"),
    ("server is killed", None, "rank 1.*SIGKILL|rank 1.*killed|signal 9"),
    ("server does not serve", 2, "the workers want parameters to be kept, but the script of server 0"),
))
def test_ends(tmp_path, how, code, sentence):
    ended = run_job(4, [_script(tmp_path, ENDINGS), how],
                    env={"PYTHONPATH": str(ROOT), "FLAGS_rpc_deadline": "20000"}, timeout=90)
    assert ended.code is not None and (ended.code == code if code is not None else ended.code), ended.story()
    assert re.search(sentence, ended.err), ended.story()
    if code == 0:
        assert ended.out.count("ends") == 4, ended.story()


def test_under_the_launcher_roles_are_the_launchers_and_bits_the_same(tmp_path, expected):
    script = _script(tmp_path, """
        import fleet_mpi
        from tests.unit.door.plain_loop import ALL_RULES, digest, train
        with fleet_mpi.join() as job:
            params = train(job, ALL_RULES)
            print(f"{job.role} {job.worker} of {job.workers}, {job.servers} servers: {digest(params)}", flush=True)
        """)
    ended = run_job(3, ["--server_num", "1", "--worker_num", "2", script], via="launch",
                    env={"PYTHONPATH": str(ROOT)}, timeout=200)
    assert ended.code == 0, ended.story()
    for worker in range(2):
        assert ended.out.count(f"worker {worker} of 2, 1 servers: {expected}") == 1, ended.story()


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_learns_with_uneven_data(tmp_path, mode):
    script = _script(tmp_path, """
        import sys
        import fleet_mpi
        from tests.unit.door.test_modes import fit
        with fleet_mpi.join(servers=1) as job:
            first, last, _ = fit(job, sys.argv[1])
            print("learned" if last < first / 4 else f"from {first} to {last}")
        """)
    ended = run_job(3, [script, mode], env={"PYTHONPATH": str(ROOT)}, timeout=90)
    assert ended.code == 0 and [rank.out for rank in ended.ranks] == ["", "learned\n", "learned\n"], ended.story()


def _script(folder, text):
    path = folder / "job.py"
    path.write_text(textwrap.dedent(text))
    return path
