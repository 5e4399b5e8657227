"""Before MPI starts: neighbours see each other, name who is missing, and end a job without MPI."""

import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from fleet_mpi import settings
from fleet_mpi.errors import Stalled
from fleet_mpi.ranks import arriving

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="names that vanish with their process are Linux's")

HOST = socket.gethostname()
# Open MPI's variables; in one machine it may number the ranks in another order than in the world.
OPEN_MPI = {"PMIX_NAMESPACE": f"test-{os.getpid()}", "OMPI_COMM_WORLD_SIZE": 3, "OMPI_COMM_WORLD_LOCAL_SIZE": 3}


def known(rank, local, **more):
    """The neighbours that rank ``rank`` sees, which is number ``local`` of its machine."""
    with settings.override(**{**OPEN_MPI, "PMIX_RANK": rank, "OMPI_COMM_WORLD_LOCAL_RANK": local, **more}):
        return arriving.neighbours()


def test_on_one_machine_neighbours_are_called_by_their_rank():
    assert known(2, 1)[1:] == (2, 3, True) and known(2, 1).name(1) == f"rank 1 (host {HOST})"


def test_on_one_machine_of_several_they_are_called_by_their_number_there():
    found = known(5, 1, OMPI_COMM_WORLD_SIZE=6)
    assert found[1:] == (1, 3, False) and found.name(2) == f"process 2 on host {HOST}"


@pytest.mark.parametrize("variables", ({}, {"PMI_SIZE": 3, "MPI_LOCALNRANKS": 3, "PMI_RANK": 0}))
def test_without_a_word_from_a_launcher_nobody_waits(variables):
    with settings.override(PMIX_NAMESPACE="", OMPI_COMM_WORLD_SIZE=0, **variables):
        assert arriving.neighbours() is None and arriving.meet_neighbours(0) is None


def test_an_ancestor_is_found_by_its_name():
    with open(f"/proc/{os.getppid()}/comm") as file:
        assert arriving._ancestor("no such process", file.read().strip()) == str(os.getppid())
    assert arriving._ancestor("no such process") == ""


def test_nodes_that_are_one_machine_do_not_take_each_others_ranks_for_neighbours(monkeypatch):
    monkeypatch.setattr(arriving, "_ancestor", lambda *names: "12")
    of_one = known(0, 0)
    monkeypatch.setattr(arriving, "_ancestor", lambda *names: "34")
    assert of_one.address(0) != known(0, 0).address(0)


def test_all_come_and_all_go_on(monkeypatch):
    assert meet(monkeypatch, present=(0, 1, 2), seconds=20) == [None, None, None]


def test_who_goes_on_and_vanishes_at_once_was_here_for_the_slow_ones(monkeypatch):
    hear = arriving._next_greeting

    def hear_late(door):
        if threading.current_thread().name == "2":
            time.sleep(0.3)
        return hear(door)
    monkeypatch.setattr(arriving, "_next_greeting", hear_late)
    assert meet(monkeypatch, present=(0, 1, 2), seconds=20) == [None, None, None]


def test_more_ranks_than_greetings_that_the_kernel_keeps(monkeypatch):
    count = 40
    many = {"OMPI_COMM_WORLD_SIZE": count, "OMPI_COMM_WORLD_LOCAL_SIZE": count}
    assert meet(monkeypatch, present=range(count), seconds=20, **many) == count * [None]


def test_who_does_not_come_is_named_and_one_of_the_others_says_so(monkeypatch):
    errors = meet(monkeypatch, present=(1, 2), seconds=0.2)
    assert [type(error) for error in errors] == [Stalled, Stalled]
    assert all(f"rank 0 (host {HOST}) did not come within 0.2 s" in str(error) for error in errors)
    assert [error.reported_by_peer for error in errors] == [False, True]


def meet(monkeypatch, present, seconds, **more):
    """What each of the ranks that are there gets or raises."""
    records, results = {rank: known(rank, rank, **more) for rank in present}, {}
    monkeypatch.setattr(arriving, "neighbours", lambda: records[int(threading.current_thread().name)])

    def come():
        try:
            results[int(threading.current_thread().name)] = arriving.meet_neighbours(seconds)
        except Stalled as error:
            results[int(threading.current_thread().name)] = error
    threads = [threading.Thread(target=come, name=str(rank)) for rank in present]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return [results[rank] for rank in present]


def test_a_launcher_of_mpich_is_told_to_end_the_job():
    reading, writing = os.pipe()
    try:
        with settings.override(PMI_FD=writing, MPI_LOCALRANKID=0):
            arriving.end_job(5)
        assert os.read(reading, 100) == b"cmd=abort exitcode=5\n"
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("line", ("-1", "977"))
def test_other_launchers_see_the_exit_code(line):
    ended = subprocess.run([sys.executable, "-c", "from fleet_mpi.ranks import arriving\narriving.end_job(5)"],
                           env={**os.environ, "PMI_FD": line, "MPI_LOCALRANKID": "0"}, timeout=60)
    assert ended.returncode == 5


def test_sruns_line_is_left_alone():
    with settings.override(PMI_FD=977, MPI_LOCALRANKID=-1):
        assert arriving.launcher_line() == -1
