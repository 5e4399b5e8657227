"""A rank's watcher: what it says, notes and passes on. No MPI takes part."""

import os
import signal
import subprocess
import sys
import time

import pytest

from fleet_mpi.launch import watched


@pytest.fixture
def start(tmp_path):
    """Start a watcher over a Python program; its rank is 2, its notes go to tmp_path."""
    started = []

    def start(code, command=None):
        environ = {**os.environ, "PMI_RANK": "2", watched.FOLDER: str(tmp_path)}
        environ.pop("OMPI_COMM_WORLD_RANK", None)
        started.append(subprocess.Popen([sys.executable, "-I", "-S", watched.__file__,
                                         *(command or [sys.executable, "-c", code])],
                                        env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return started[-1]
    yield start
    for process in started:
        process.kill()
        process.communicate()


def note(folder):
    """The note of the first rank that failed, or None."""
    path = folder / watched.FIRST
    return path.read_text() if path.exists() else None


def test_an_end_in_order_leaves_no_note(start, tmp_path):
    process = start("print('done')")
    assert process.communicate(timeout=30) == ("done\n", "")
    assert process.returncode == 0 and note(tmp_path) is None


def test_an_exit_code_is_passed_on_and_noted(start, tmp_path):
    process = start("import sys; sys.exit(85)")
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 85 and note(tmp_path) == "85"


def test_a_killed_rank_is_named_and_noted_as_a_lost_peer(start, tmp_path):
    process = start("import os; os.kill(os.getpid(), 9)")
    said = process.communicate(timeout=30)[1]
    assert said == f"fleet_mpi: rank 2 on {os.uname().nodename} was killed by signal 9 (SIGKILL)\n"
    assert process.returncode == 4 and note(tmp_path) == "4"


def test_only_the_first_note_counts(start, tmp_path):
    (tmp_path / watched.FIRST).write_text("7")
    assert start("import sys; sys.exit(3)").wait(timeout=30) == 3
    assert note(tmp_path) == "7"


def test_without_a_folder_nothing_is_noted():
    watched.leave_note("", 3)
    watched.leave_note("/nowhere/at/all", 3)


def test_a_signal_from_mpirun_is_passed_on_and_is_no_failure(start, tmp_path):
    process = start("import time; print('up', flush=True); time.sleep(60)")
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 143 and note(tmp_path) is None


def test_a_rank_may_act_on_a_signal_and_go_on(start, tmp_path):
    process = start("import signal, sys, time\n"
                    "signal.signal(signal.SIGUSR1, lambda *_: (print('saved', flush=True), sys.exit(0)))\n"
                    "print('up', flush=True); time.sleep(60)")
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGUSR1)
    assert process.communicate(timeout=30) == ("saved\n", "")
    assert process.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child's life to its parent's")
def test_a_rank_goes_with_its_watcher(start):
    process = start("import os, time; print(os.getpid(), flush=True); time.sleep(60)")
    rank = int(process.stdout.readline())
    process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{rank}") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{rank}")


def test_a_command_that_does_not_exist_is_a_sentence(start):
    process = start("", command=["/no/such/python"])
    assert "cannot start /no/such/python" in process.communicate(timeout=30)[1]
    assert process.returncode == 127
