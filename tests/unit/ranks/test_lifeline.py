"""A rank's connection to its watcher: only its own user's, and none where nobody is."""

import os
import socket
import sys

import pytest

from fleet_mpi.ranks import lifeline

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="names of sockets that are no files are Linux's")
ADDRESS = f"\0fleet_mpi test of lifelines {os.getpid()}"


def test_without_a_watcher_a_rank_does_without():
    lifeline.connect(ADDRESS, "rank 0", 1.0)
    assert not lifeline.is_connected()
    lifeline.rename("rank 0 (worker 0)", 1.0)
    with lifeline.phase("MPI_Init", 1.0):
        lifeline.say_bye_at_exit()


def test_a_name_that_another_user_took_is_not_believed(monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(ADDRESS)
        listener.listen(1)
        monkeypatch.setattr(os, "getuid", lambda: 12345)
        lifeline.connect(ADDRESS, "rank 0", 1.0)
        assert not lifeline.is_connected()


def test_where_the_name_is_taken_no_watcher_is_started():
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(ADDRESS)
        lifeline.listen(ADDRESS, 2)
        lifeline.connect(ADDRESS, "rank 0", 1.0)
        assert not lifeline.is_connected()


def test_a_watcher_that_does_not_answer_is_none(monkeypatch):
    monkeypatch.setattr(lifeline, "_ANSWERING_S", 0.1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(ADDRESS)
        listener.listen(1)
        lifeline.connect(ADDRESS, "rank 0", 1.0)
        assert not lifeline.is_connected()
