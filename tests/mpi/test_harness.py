"""The harness itself: whatever goes wrong in a rank, the job ends, and its last words are shown."""

import textwrap

import pytest

from tests.mpi import jobs
from tests.mpi.jobs import run_inside, run_job

FAILING = """
    import pytest
    from mpi4py import MPI

    @pytest.mark.mpi(min_size=2)
    def test_fails_on_one_rank():
        assert MPI.COMM_WORLD.rank != 1, "rank one's own words"

    @pytest.mark.mpi(min_size=2)
    def test_runs_all_the_same():
        MPI.COMM_WORLD.Barrier()

    @pytest.mark.mpi(min_size=2)
    def test_leaves_the_others_waiting():
        assert MPI.COMM_WORLD.rank != 0
        MPI.COMM_WORLD.Barrier()
    """


@pytest.fixture
def inside(tmp_path):
    """Run this text as an inside-test, with two ranks."""
    def run(text, **options):
        (tmp_path / "test_it.py").write_text(textwrap.dedent(text))
        environ = {"TEST_PATIENCE": "5"}
        return run_inside(2, ["-p", "tests.mpi.in_step"], folder=tmp_path, env=environ, **options)
    return run


def test_a_failing_rank_is_heard_by_all_and_the_rest_still_runs(inside):
    ended = inside(FAILING, timeout=60)
    assert ended.code not in (0, None), ended.story()
    waited, failed = ended.ranks
    assert "rank one's own words" in failed.err
    assert "test_fails_on_one_rank failed on rank 1" in waited.err
    assert "test_runs_all_the_same PASSED" in waited.out and "test_runs_all_the_same PASSED" in failed.out
    assert "rank 0 waited for the others after" in waited.err
    assert "rank one's own words" in ended.story()


def test_a_deadlock_ends_with_the_stacks(inside):
    ended = inside("""
        import pytest
        from mpi4py import MPI

        @pytest.mark.mpi(min_size=2)
        def test_waits_forever():
            MPI.COMM_WORLD.recv()
        """, per_test=1, timeout=60)
    assert ended.code not in (0, None), ended.story()
    assert "in test_waits_forever" in ended.story()


def test_a_job_is_ended_at_its_deadline_and_what_it_wrote_is_kept():
    ended = run_job(2, ["-c", "import time; print('rank is up'); time.sleep(60)"], timeout=3)
    assert ended.code is None and ended.seconds < 30
    assert [rank.out for rank in ended.ranks] == ["rank is up\n"] * 2
    assert "still running at the deadline" in ended.story() and "rank is up" in ended.story()


def test_groups_of_one_job_have_their_own_arguments_and_environment():
    show = ("import os, sys; from mpi4py import MPI; "
            "print(MPI.COMM_WORLD.size, sys.argv[1:], os.environ.get('ROLE'), {})")
    ended = run_job(1, ["-c", show.format(1), "a"], mpmd=[(2, ["-c", show.format(2), "b"], {"ROLE": "worker"})])
    assert ended.code == 0, ended.story()
    assert [rank.out for rank in ended.ranks] == ["3 ['a'] None 1\n"] + ["3 ['b'] worker 2\n"] * 2
    assert ended.out == "".join(rank.out for rank in ended.ranks)


@pytest.mark.parametrize("failures, starts, code", ((0, 1, 0), (2, 3, 0), (3, 3, 213)))
def test_a_mpirun_that_could_not_start_is_started_again_twice_at_most(failures, starts, code, monkeypatch, capsys):
    failure = (213, "", "The PMIx server's listener thread failed to start. We cannot\ncontinue.\n")
    endings = [failure] * failures + [(0, "", "")]
    monkeypatch.setattr(jobs, "_run", lambda *_: endings.pop(0))
    ended = run_job(2, ["-c", "pass"])
    assert ended.code == code and capsys.readouterr().out.count("starting it again") == starts - 1
