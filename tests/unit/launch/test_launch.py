"""The launcher's entry: errors are sentences, and a rank that starts it becomes the script."""

import os
import sys

import pytest

import fleet_mpi.launch
from fleet_mpi.launch import main


@pytest.fixture(autouse=True)
def outside_a_job(monkeypatch):
    """No trace of a mpirun around the tests."""
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "FLEET_MPI_SERVERS"):
        monkeypatch.delenv(name, raising=False)


def test_an_error_is_a_sentence_and_its_exit_code(capsys):
    assert main(["train.py"]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("fleet_mpi: UsageError: how many ranks?")


def test_a_missing_script_is_told_once_and_not_by_every_rank(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["-np", "2", "nowhere.py"]) == 2
    assert f"no script 'nowhere.py' (in {tmp_path})" in capsys.readouterr().err


def test_a_missing_mpi_is_exit_code_3(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "")
    assert main(["-np", "2", "-m", "train"]) == 3
    assert "no mpirun" in capsys.readouterr().err


@pytest.fixture
def became(monkeypatch):
    """The command lines that this process would have become."""
    class Became(Exception):
        pass

    lines = []

    def execv(path, words):
        lines.append(words)
        raise Became
    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.setattr(fleet_mpi.launch.mpirun, "find_mpirun", lambda: pytest.fail("no job is to be started"))
    yield lines, Became


@pytest.mark.parametrize("name", ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"))
def test_in_a_rank_it_becomes_the_script(name, monkeypatch, became):
    lines, raised = became
    monkeypatch.setenv(name, "3")
    monkeypatch.setenv("FLEET_MPI_SERVERS", "")
    with pytest.raises(raised):
        main(["--server_num", "1", "--worker_num", "2", "-m", "train", "-x"])
    assert lines == [[sys.executable, "-m", "fleet_mpi", "-m", "train", "-x"]]
    assert os.environ["FLEET_MPI_SERVERS"] == "1"


def test_in_a_job_of_another_size_it_refuses(monkeypatch, became, capsys):
    monkeypatch.setenv("PMI_SIZE", "4")
    assert main(["-np", "3", "-m", "train"]) == 3
    assert "is to start 3 ranks, but runs in a job of 4" in capsys.readouterr().err
    assert became[0] == []
