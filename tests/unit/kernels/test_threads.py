"""The pool of threads: everything runs once, errors arrive, BLAS is held to one thread."""

import os
import threading

import numpy as np
import pytest
import threadpoolctl

from fleet_mpi import settings
from fleet_mpi.kernels import threads


@pytest.fixture
def two_threads():
    threads.set_threads(2)
    yield
    threads.set_threads(None)


def blas_now():
    return [library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"]


def test_every_index_runs_exactly_once(two_threads):
    seen = []
    threads.for_each(seen.append, 1000)
    assert sorted(seen) == list(range(1000))


def test_two_threads_are_at_work_at_the_same_time(two_threads):
    both = threading.Barrier(2, timeout=20)
    threads.for_each(lambda i: both.wait(), 2)  # breaks the barrier if one thread does both


def test_one_thread_is_a_plain_loop_in_order():
    threads.set_threads(1)
    try:
        seen = []
        threads.for_each(lambda i: seen.append((i, threading.get_ident())), 5)
        assert seen == [(i, threading.get_ident()) for i in range(5)]
    finally:
        threads.set_threads(None)


@pytest.mark.parametrize("failing", [0, 7, 63])
def test_an_error_of_a_piece_reaches_the_caller(two_threads, failing):
    def piece(i):
        if i == failing:
            raise LookupError("piece %d" % i)
    with pytest.raises(LookupError, match="piece %d" % failing):
        threads.for_each(piece, 64)
    seen = []
    threads.for_each(seen.append, 8)  # the pool still serves
    assert sorted(seen) == list(range(8))


def test_a_piece_may_itself_call_for_each(two_threads):
    seen = []
    threads.for_each(lambda i: threads.for_each(lambda j: seen.append((i, j)), 3), 4)
    assert sorted(seen) == [(i, j) for i in range(4) for j in range(3)]


def test_two_callers_at_once_both_finish(two_threads):
    seen = []
    others = threading.Thread(target=threads.for_each, args=(lambda i: seen.append(("other", i)), 200))
    others.start()
    threads.for_each(lambda i: seen.append(("mine", i)), 200)
    others.join()
    assert len(set(seen)) == 400


def test_blas_is_held_to_one_thread(two_threads):
    inside = []
    threads.for_each(lambda i: inside.append(blas_now()), 4)
    assert all(set(counts) == {1} for counts in [*inside, blas_now()])


def test_the_number_comes_from_the_setting_or_the_cores():
    with settings.override(FLEET_MPI_THREADS=3):
        assert threads.threads() == 3
    with settings.override(FLEET_MPI_THREADS=0):
        assert threads.threads() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("name", ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"))
@pytest.mark.parametrize("ranks, bound_to, share", (
    (1, 8, 8), (2, 8, 4), (3, 8, 2), (8, 8, 1), (20, 8, 1), (2, 1, 1), (2, 4, 4)))
def test_ranks_on_one_machine_share_its_cores(name, ranks, bound_to, share, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(bound_to))
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    threads.ranks_here.cache_clear()
    try:
        with settings.override(**{"FLEET_MPI_THREADS": 0, name: ranks}):
            assert threads.threads() == share
    finally:
        threads.ranks_here.cache_clear()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python warns of forking a process with threads
def test_a_forked_child_computes_with_threads_of_its_own(two_threads):
    threads.for_each(lambda i: None, 2)
    child = os.fork()
    if child == 0:
        seen = []
        threads.for_each(seen.append, 10)
        os._exit(0 if sorted(seen) == list(range(10)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_scratch_memory_is_shared_by_calls_and_not_by_threads(two_threads):
    first = threads.scratch("test", (4, 8), np.float32)
    assert first.shape == (4, 8) and first.dtype == np.float32
    assert np.shares_memory(first, threads.scratch("test", (3,), np.float64))
    elsewhere = []
    other = threading.Thread(target=lambda: elsewhere.append(threads.scratch("test", (4, 8), np.float32)))
    other.start()
    other.join()
    assert not np.shares_memory(first, elsewhere[0])


def test_pieces_cover_everything_without_regard_to_threads():
    assert threads.pieces(7, 3) == [slice(0, 3), slice(3, 6), slice(6, 7)]
    assert threads.pieces(0, 3) == []
