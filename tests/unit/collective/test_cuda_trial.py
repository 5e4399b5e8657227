"""The trial of device buffers: it passes, fails or dies in a process of its own, and its caller lives."""

import sys
import types

import pytest

from fleet_mpi.collective import cuda_trial
from fleet_mpi.collective.cuda_trial import alone, exchanged, why_it_fails
from fleet_mpi.testing import device


@pytest.mark.parametrize("program, why", (
    ("print('device buffers were sent and summed')", ""),
    ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "a trial was killed by SIGSEGV"),
    ("raise ValueError('no such device')", "a trial failed: ValueError: no such device"),
    ("print('12 bytes in GPU memory were sent wrongly'); raise SystemExit(1)",
     "a trial failed: 12 bytes in GPU memory were sent wrongly"),
    ("raise SystemExit(3)", "a trial failed: exit code 3"),
    ("", "a trial failed: exit code 0")))
def test_however_it_ends_the_answer_is_a_sentence(program, why):
    assert why_it_fails(0, 20, [sys.executable, "-c", program]) == why


def test_one_that_hangs_is_given_up():
    assert why_it_fails(0, 0.2, [sys.executable, "-c", "import time; time.sleep(20)"]) == "a trial did not end in 0 s"


def test_one_that_cannot_be_started_is_a_no():
    assert why_it_fails(0, 20, ["/nowhere/python"]).startswith("a trial could not be started")


def test_it_is_alone_whatever_started_its_parent():
    of_launchers = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_FD", "MPI_LOCALRANKID", "SLURM_PROCID", "PALS_RANKID")
    kept = alone({**dict.fromkeys(of_launchers, "1"), "OMPI_MCA_pml": "ucx", "CUDA_VISIBLE_DEVICES": "3"})
    assert not kept.keys() & set(of_launchers)
    assert (kept["OMPI_MCA_pml"], kept["CUDA_VISIBLE_DEVICES"], kept["OMPI_MCA_btl"]) == ("ucx", "3", "self")


class Comm:
    """A world of one; ``lost`` is added to what is sent or summed."""

    rank, size = 0, 1

    def __init__(self, sent=0.0, summed=0.0):
        self.lost = sent, summed

    def Sendrecv(self, sent, dest, recvbuf, source):
        assert dest == source == 0
        sent.__cuda_array_interface__  # as MPI would: the stream has been waited for
        recvbuf[...] = sent + self.lost[0]

    def Allreduce(self, sent, total):
        total[...] = sent + self.lost[1]


@pytest.mark.parametrize("comm, wrong", ((Comm(), ""), (Comm(sent=1.0), "12 bytes in GPU memory were sent wrongly"),
                                         (Comm(summed=1.0), "12 bytes in GPU memory were summed wrongly")))
def test_what_comes_back_is_compared(comm, wrong):
    assert exchanged(comm, device) == wrong


def test_the_device_is_the_rank_s_own(monkeypatch, capsys):
    used = []
    xp = types.SimpleNamespace(cuda=types.SimpleNamespace(
        Device=lambda number: types.SimpleNamespace(use=lambda: used.append(number)),
        get_current_stream=device.cuda.get_current_stream), asarray=device.asarray, asnumpy=device.asnumpy)
    monkeypatch.setattr(cuda_trial.arrays, "cupy_module", lambda: xp)
    monkeypatch.setitem(sys.modules, "mpi4py", types.SimpleNamespace(MPI=types.SimpleNamespace(COMM_WORLD=Comm())))
    assert cuda_trial.main(["2"]) == 0 and used == [2] and cuda_trial.DONE in capsys.readouterr().out
