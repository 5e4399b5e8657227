"""Profiles: a report in a file, its head in the log, nothing on stdout."""

import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine import profiler
from fleet_mpi.program.engine.executor import Executor
from tests.unit.program.building import data, mul


@pytest.fixture
def work():
    """A run of a small program."""
    x = data("x", [-1, 2])
    out, executor = mul(x, x), Executor()
    return lambda: executor.run(feed={"x": [[1.0, 2.0]]}, fetch_list=[out])


def test_a_profile_names_the_functions_that_ran(tmp_path, capsys, work):
    with profiler.profiler("CPU", "total", str(tmp_path / "profile")):
        work()
    assert "(run)" in (tmp_path / "profile").read_text()
    told = capsys.readouterr()
    assert told.out == "" and f"profile, the whole of it in {tmp_path}/profile" in told.err


def test_a_reset_forgets_what_ran_before(tmp_path, work):
    profiler.start_profiler("All")
    work()
    profiler.reset_profiler()
    profiler.stop_profiler(profile_path=str(tmp_path / "profile"))
    assert "(run)" not in (tmp_path / "profile").read_text()


def test_stopping_twice_is_no_error(tmp_path):
    profiler.stop_profiler(profile_path=str(tmp_path / "profile"))
    profiler.reset_profiler()
    assert not (tmp_path / "profile").exists()


def test_unknown_words_are_refused():
    with pytest.raises(UsageError, match="state must be CPU, GPU or All, got 'cpu'"):
        profiler.start_profiler("cpu")
    with pytest.raises(UsageError, match="sorted_key must be one of .* got 'slowest'"):
        profiler.stop_profiler("slowest")


def test_the_cuda_profiler_only_runs_the_block():
    with profiler.cuda_profiler("file"):
        pass
