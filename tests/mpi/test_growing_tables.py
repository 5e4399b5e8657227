"""Tables without height over MPI: equal bits for 1 and 3 servers and for a twin, saved and loaded in other layouts."""

import textwrap

from tests.mpi.jobs import ROOT, run_job

TRAINING = """
    import hashlib, sys
    import numpy as np
    import fleet_mpi

    servers, folder, height, FAR = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]) or None, int(sys.argv[4])


    def batch(worker, step):
        draw = np.random.default_rng([worker, step])
        ids = draw.integers(0, 900, 0 if step == worker else 200 + 3000 * (step == 2)) * FAR
        return ids, draw.normal(size=(len(ids), 6)).astype("float32")


    def train(job, begin, end):
        for step in range(begin, end + (job.worker if end == 4 else 0)):   # uneven data
            ids, grads = batch(job.worker, step)
            table.pull(ids)
            table.push(ids, grads)
            server.push_pull({"w": np.ones(70000, "float32")})


    def digest():
        return hashlib.sha256(table.pull(np.arange(900) * FAR).tobytes()).hexdigest()

    with fleet_mpi.join(servers=servers) as job:
        server = job.parameter_server({"w": np.zeros(70000, "float32")}, "sgd", 0.1)
        table = job.table("users", 6, height, "adam", 0.1, init=("normal", 0, 1))
        if len(sys.argv) > 5:
            job.load(sys.argv[5])
            assert job.steps == 2
        else:
            train(job, 0, 2)
            job.save(folder)
            job.barrier()
        train(job, 2, 4)
        if job.worker == 0:
            job.leave()
        else:
            print(digest(), table.count)
    """


def ends_with(tmp_path, servers, height=0, far=10 ** 15, load=None):
    """The digest of all rows, and their number, at the end of a job of two workers."""
    script = tmp_path / "job.py"
    script.write_text(textwrap.dedent(TRAINING))
    ended = run_job(servers + 2, [script, servers, tmp_path / f"of {servers}", height, far, *([load] if load else [])],
                    env={"PYTHONPATH": str(ROOT), "FLEET_MPI_SEED": "7"}, timeout=300)
    assert ended.code == 0, ended.story()
    return ended.out.split()


def test_rows_have_equal_bits_for_any_number_of_servers_and_in_a_twin(tmp_path):
    expected = ends_with(tmp_path, 1)
    assert 0 < int(expected[1]) <= 900
    assert ends_with(tmp_path, 3) == expected
    assert ends_with(tmp_path, 1, load=tmp_path / "of 3") == expected
    assert ends_with(tmp_path, 3, load=tmp_path / "of 1") == expected
    assert _content(tmp_path / "of 1") == _content(tmp_path / "of 3")


def test_it_is_the_twin_of_a_table_with_height(tmp_path):
    assert ends_with(tmp_path, 2, 900, 1) == [ends_with(tmp_path, 2, 0, 1)[0], "900"]


GEO = """
    import hashlib, sys
    import numpy as np
    import fleet_mpi

    with fleet_mpi.join(servers=int(sys.argv[1])) as job:
        server = job.parameter_server({"w": np.zeros(70000, "float32")}, "adam", 0.1, mode="geo", k_steps=2)
        table = job.table("users", 6, rule="adagrad", lr=0.1, init=("normal", 0, 1))
        server.pull()   # the first use is everybody's
        for turn in range(8):
            if turn % job.workers == job.worker:   # in turns: asynchronous exchanges have an order then
                draw = np.random.default_rng(turn)
                for _ in range(3):
                    ids = draw.integers(-900, 900, 2000) * 10 ** 15
                    table.push(ids, table.pull(ids) + draw.normal(size=(2000, 6)).astype("float32"))
                    server.push_pull({"w": np.ones(70000, "float32")})
            job.barrier()
        print(table.count, flush=True)   # which sends what is left
        job.barrier()
        ids = np.arange(-900, 900) * 10 ** 15
        found = server.fetch(["users", "users@KEYS"])
        assert len(found["users@KEYS"]) == table.count
        print(hashlib.sha256(found["users"].tobytes() + table.pull(ids).tobytes()).hexdigest())
    """


def test_in_geo_rows_have_equal_bits_for_any_number_of_servers(tmp_path):
    script, told = tmp_path / "geo.py", {}
    script.write_text(textwrap.dedent(GEO))
    for servers in (1, 3):
        ended = run_job(servers + 2, [script, servers], env={"PYTHONPATH": str(ROOT), "FLEET_MPI_SEED": "7"},
                        timeout=300)
        assert ended.code == 0, ended.story()
        told[servers] = [rank.out.split()[-1] for rank in ended.ranks if rank.out]
    assert len(told[1]) == 2 and told[1] == told[3]


def _content(folder):
    """{name: bytes} of the files of a save."""
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file() and not one.name.startswith(".")}
