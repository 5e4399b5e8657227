"""The mpirun line for processes that were begun by hand."""

import os
import shlex
import stat
import sys

import pytest

from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.ranks import manual_start

SERVERS = ["10.0.0.1:6174", "10.0.0.2:6175"]
CLOUD = {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "0", "PADDLE_TRAINERS_NUM": "2",
         "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(SERVERS), "HOME": "/root", "TRAINER_SECRET": "x"}


def parts(line):
    """[(variables, command)] of each process that a line starts."""
    words = shlex.split(line)
    while words[0] != "-np":
        words.pop(0)
    found = []
    for part in " ".join(map(shlex.quote, words)).split(" : "):
        count, *rest = shlex.split(part)[1:]
        assert count == "1"
        told = dict(word.split("=", 1) for word in rest[1:] if "=" in word) if rest[0] == "env" else {}
        found.append((told, rest[1 + len(told):] if told else rest))
    return found


def test_every_process_of_the_description_is_told_who_it_is():
    found = parts(manual_start.one_line(2, SERVERS, ["python", "train.py", "--a b"], CLOUD))
    assert [command for _, command in found] == [["python", "train.py", "--a b"]] * 4
    told = [variables for variables, _ in found]
    assert [variables["TRAINING_ROLE"] for variables in told] == ["PSERVER", "PSERVER", "TRAINER", "TRAINER"]
    assert [(variables["POD_IP"], variables["PADDLE_PORT"]) for variables in told[:2]] == [
        ("10.0.0.1", "6174"), ("10.0.0.2", "6175")]
    assert [variables["PADDLE_TRAINER_ID"] for variables in told[2:]] == ["0", "1"]
    for variables in told:
        assert variables["PADDLE_TRAINERS_NUM"] == "2"
        assert variables["PADDLE_PSERVERS_IP_PORT_LIST"] == ",".join(SERVERS)
        assert "HOME" not in variables and "TRAINER_SECRET" not in variables


def test_the_line_is_the_same_whichever_process_prints_it():
    server = {name: value for name, value in CLOUD.items() if name != "PADDLE_TRAINER_ID"}
    server.update(TRAINING_ROLE="PSERVER", POD_IP="10.0.0.2", PADDLE_PORT="6175")
    assert manual_start.one_line(2, SERVERS, ["train"], CLOUD) == manual_start.one_line(2, SERVERS, ["train"], server)


def test_seed_002s_variables_are_told_apart_too():
    seed = {"PADDLE_PSERVER_PORT": "6174", "PADDLE_PSERVER_IPS": "192.168.1.2", "PADDLE_TRAINERS": "2",
            "PADDLE_CURRENT_IP": "192.168.1.2", "PADDLE_TRAINER_ID": "1", "PADDLE_TRAINING_ROLE": "PSERVER"}
    found = parts(manual_start.one_line(2, ["192.168.1.2:6174"], ["train"], seed))
    assert [told["PADDLE_TRAINING_ROLE"] for told, _ in found] == ["PSERVER", "TRAINER", "TRAINER"]
    assert [told["PADDLE_TRAINER_ID"] for told, _ in found[1:]] == ["0", "1"]
    assert found[0][0]["PADDLE_CURRENT_IP"] == "192.168.1.2" and found[1][0]["PADDLE_PSERVER_PORT"] == "6174"


def test_without_variables_each_part_is_the_command_itself():
    assert parts(manual_start.one_line(1, ["", ""], ["python", "train.py"], {})) == [({}, ["python", "train.py"])] * 3


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """A Python environment with these programs beside its python."""
    def environment(*programs):
        (tmp_path / "bin").mkdir()
        for program in programs:
            path = tmp_path / "bin" / program
            path.write_text("#!/bin/sh\n")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(sys, "prefix", str(tmp_path))
        monkeypatch.setattr(os, "cpu_count", lambda: 2)
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setenv("PATH", "")
        return str(tmp_path / "bin" / "mpirun")
    return environment


def test_open_mpi_is_told_what_it_asks_for(environment):
    mpirun = environment("mpirun", "ompi_info")
    assert manual_start.one_line(2, [""], ["train"],
                            {}).startswith(f"{mpirun} --allow-run-as-root --oversubscribe -np 1 train : ")
    assert manual_start.one_line(2, [], ["train"], {}).startswith(f"{mpirun} --allow-run-as-root -np 1 train : ")


def test_mpich_needs_nothing(environment):
    mpirun = environment("mpirun")
    assert manual_start.one_line(2, [""], ["train"], {}) == f"{mpirun} -np 1 train : -np 1 train : -np 1 train"


def test_where_no_mpi_lies_beside_python_its_name_is_written(environment):
    environment()
    assert manual_start.one_line(1, [""], ["train"], {}) == "mpirun -np 1 train : -np 1 train"


def test_the_refusal_says_who_what_and_the_line():
    error = manual_start.refusal("server", 1, 2, SERVERS)
    assert isinstance(error, EnvironmentProblem) and error.exit_code == 3
    first, line = str(error).splitlines()
    assert first.startswith("this process is server 1 of a job with 2 worker(s) and 2 server(s), but it was started "
                            "alone")
    assert len(parts(line)) == 4
