"""The launcher's entry: errors are sentences, and a rank that starts it becomes the script."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from fleet_mpi.launch import log_folder, main, notes, starting
from fleet_mpi.launch.mpirun import MPICH, Launcher
from fleet_mpi.launch.running import Ending

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def outside_a_job(monkeypatch):
    """No trace of a mpirun around the tests."""
    for name in list(os.environ):
        if name.startswith(("OMPI_COMM_WORLD", "PMI", "SLURM", "FLEET_MPI_", "PADDLE_", "TRAINING_ROLE", "POD_IP")):
            monkeypatch.delenv(name)


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
    monkeypatch.setattr(starting.mpirun, "find_launcher", lambda name: pytest.fail("no job is to be started"))
    yield lines, Became


@pytest.mark.parametrize("variables", (
    {"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "2"}, {"PMI_SIZE": "3", "PMI_RANK": "2"},
    {"SLURM_STEP_NUM_TASKS": "3", "PMIX_RANK": "2"}))
def test_in_a_rank_it_becomes_the_script(variables, monkeypatch, became):
    lines, raised = became
    environ = dict(os.environ, **variables, FLEET_MPI_SERVERS="", POD_IP="strange")
    monkeypatch.setattr(os, "environ", environ)
    with pytest.raises(raised):
        main(["--server_num", "1", "--worker_num", "2", "-m", "train", "-x"])
    assert lines == [[sys.executable, "-m", "fleet_mpi", "-m", "train", "-x"]]
    assert environ["FLEET_MPI_SERVERS"] == "1" and environ["TRAINING_ROLE"] == "TRAINER"
    assert environ["PADDLE_TRAINER_ID"] == "1" and "POD_IP" not in environ


def test_in_a_job_of_another_size_it_refuses(monkeypatch, became, capsys):
    monkeypatch.setenv("PMI_SIZE", "4")
    assert main(["-np", "3", "-m", "train"]) == 3
    assert "is to start 3 ranks, but runs in a job of 4" in capsys.readouterr().err
    assert became[0] == []


@pytest.fixture
def endings():
    """How the next jobs end; all others fail."""
    return []


@pytest.fixture
def started(monkeypatch, tmp_path, endings):
    """Launch in a folder with ``train.py``; the command lines and folders that jobs would have had."""
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(starting.mpirun, "find_launcher", lambda name: Launcher(name, MPICH))
    jobs = []

    def run(words, environ, folder):
        jobs.append((words, environ, folder))
        return endings.pop(0) if endings else Ending(9)
    monkeypatch.setattr(starting.running, "run", run)
    return jobs


def test_a_collective_job_shows_its_beginning_and_keeps_its_labels(started, capsys, tmp_path):
    assert main(["--gpus=0,1", "train.py"]) == 4
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("-----------  Configuration Arguments -----------\ngpus: 0,1\n")
    assert told.err.endswith("fleet_mpi: the job ended with code 4; what ranks wrote is in log\n")
    assert (tmp_path / "log" / "endpoints.log").read_text().split()[1:] == ["127.0.0.1:6170", "127.0.0.1:6171"]
    (_, environ, folder), = started
    assert environ["FLEET_MPI_LAUNCH_DIR"] == folder and not os.path.exists(folder)


def test_notes_lie_with_the_logs_where_ranks_are_elsewhere(started, tmp_path):
    main(["--ips", "a,b", "--gpus", "0", "train.py"])
    main(["--ips", "localhost", "--gpus", "0", "train.py"])
    folders = [os.path.dirname(folder) for _, _, folder in started]
    assert folders[0] == str(tmp_path / "log") and folders[1] != folders[0]
    assert not list((tmp_path / "log").glob(".fleet*"))


def test_a_plain_job_shows_nothing_and_keeps_logs_as_others_do(started, capsys, tmp_path):
    assert main(["-np", "2", "train.py"]) == main(["-np", "2", "--log_dir", "", "train.py"]) == 4
    assert capsys.readouterr().err == "fleet_mpi: the job ended with code 4; what ranks wrote is in log\n"
    assert [environ.get("FLEET_MPI_LAUNCH_LOGS") for _, environ, _ in started] == [str(tmp_path / "log"), None]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "train.py"]


def test_a_flag_without_effect_is_spoken_of(started, capsys):
    main(["-np", "2", "--master", "h:1", "train.py"])
    assert "fleet_mpi: --master has no effect: ranks of MPI find each other\n" in capsys.readouterr().err


def test_logs_that_cannot_be_written_are_a_sentence(started, capsys):
    assert main(["--gpus", "0", "--log_dir", "train.py", "train.py"]) == 3
    assert "say another by --log_dir" in capsys.readouterr().err and started == []


def test_a_folder_of_logs_that_nobody_asked_for_may_be_missing(started, capsys, tmp_path):
    (tmp_path / "log").touch()
    assert main(["-np", "2", "train.py"]) == 4
    assert "this job keeps no logs" in capsys.readouterr().err
    (_, environ, _), = started
    assert "FLEET_MPI_LAUNCH_LOGS" not in environ


def test_a_second_job_has_another_folder_for_its_logs(started, capsys, tmp_path):
    first = log_folder.claim("log", True)
    main(["-np", "2", "train.py"])
    first.release()
    main(["-np", "2", "train.py"])
    assert [environ["FLEET_MPI_LAUNCH_LOGS"] for _, environ, _ in started] == [str(tmp_path / "log.2"),
                                                                               str(tmp_path / "log")]
    assert capsys.readouterr().err.splitlines()[:2] == [
        "fleet_mpi: another job writes its logs to log now: those of this one are in log.2",
        "fleet_mpi: the job ended with code 4; what ranks wrote is in log.2"]


@pytest.mark.parametrize("began, code", ((False, 3), (True, 255)))
def test_hosts_that_cannot_be_reached_are_named_if_no_rank_has_begun(started, endings, capsys, monkeypatch, began,
                                                                     code):
    def run(words, environ, folder):
        if began:
            notes.leave_note(folder, notes.BEGAN, "", "0")
        return Ending(255, boxes="a box that tells nothing\n")
    monkeypatch.setattr(starting.running, "run", run)
    assert main(["--ips", "no.such.host1,no.such.host2", "--nproc_per_node", "1", "--rsh", "false", "train.py"]) == code
    said = capsys.readouterr().err
    assert ("fleet_mpi: EnvironmentProblem: no rank was started: no.such.host1, no.such.host2 cannot be reached from "
            "here by false: exit code 1." in said) is not began
    assert ("a box" in said) is began


def test_launch_ps_starts_two_servers_and_two_workers_with_logs_of_its_own(started, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["launch_ps", "train.py"])
    with pytest.raises(SystemExit):
        runpy.run_module("fleet_mpi.launch.launch_ps", run_name="__main__")
    (words, environ, _), = started
    assert words[:3] == ("mpirun", "-np", "4") and environ["FLEET_MPI_SERVERS"] == "2" and (tmp_path / "logs").is_dir()


NOT_BEGUN = Ending(213, boxes="The PMIx server's listener thread failed to start. We cannot\ncontinue.\n")


@pytest.mark.parametrize("failures, starts, code", ((1, 2, 0), (2, 3, 0), (3, 3, 213)))
def test_a_mpirun_that_could_not_start_is_started_again_twice_at_most(started, endings, capsys, failures, starts, code):
    endings += [NOT_BEGUN] * failures + [Ending(0)]
    assert main(["-np", "2", "train.py"]) == code and len(started) == starts
    said = capsys.readouterr().err
    again = [line for line in said.splitlines() if "starting it again" in line]
    assert len(again) == starts - 1 and ("listener thread" in said) is (code != 0)


def test_an_interrupt_during_imports_is_no_traceback(tmp_path):
    (tmp_path / "difflib.py").write_text("raise KeyboardInterrupt")
    ended = subprocess.run([sys.executable, "-m", "fleet_mpi.launch", "-np", "2", "train.py"], capture_output=True,
                           timeout=60, env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])})
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")
