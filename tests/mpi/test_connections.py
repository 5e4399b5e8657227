"""A job over plain arrays, from joining to the end: two workers and two servers come to the bits of numpy's rule."""

import textwrap

from tests.mpi.jobs import ROOT, run_job

JOB = """
    import sys

    from fleet_mpi.connections import server
    from fleet_mpi.connections.worker import WorkerConnection
    from fleet_mpi.ranks import cluster
    from tests.unit.connections.arrays_job import first_values, is_right, terms, work

    made, rank = terms(workers=2), cluster.world().rank
    if rank < 2:
        server.serve(made, rank, server.start_from(first_values()))
        print("served")
    else:
        connection = WorkerConnection(made)
        connection.finish_at_exit()
        print("right" if is_right(work(connection, connection.client.index), 2) else "wrong")
    """


def test_two_workers_and_two_servers_train_over_arrays(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(textwrap.dedent(JOB))
    ended = run_job(4, [script], env={"PYTHONPATH": str(ROOT)})
    assert ended.code == 0, ended.story()
    assert [rank.out for rank in ended.ranks] == ["served\n", "served\n", "right\n", "right\n"]
