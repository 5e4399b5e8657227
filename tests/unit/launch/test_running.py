"""Exit codes and signals of a job, with any command in mpirun's place."""

import os
import signal
import subprocess
import sys

import pytest

from fleet_mpi.launch import watched
from fleet_mpi.launch.running import cores, exit_code, run


def test_the_code_of_the_command_comes_back():
    program = "import os, sys; sys.exit(int(os.environ['CODE']))"
    assert run([sys.executable, "-c", program], {"CODE": "23"}) == (23, None)


def test_signals_do_what_they_did_before():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)]
    run(["true"], dict(os.environ))
    assert before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)]


PROGRAM = """
import sys
from fleet_mpi.launch.running import exit_code, run
job = "import signal, time; " + sys.argv[1] + "; print('up', flush=True); time.sleep(60)"
print(*run([sys.executable, "-c", job], None), flush=True)
"""


@pytest.mark.parametrize("number, job, said", (
    (signal.SIGTERM, "pass", "-15 15"),
    (signal.SIGINT, "pass", "-15 2"),
    (signal.SIGTERM, "signal.signal(signal.SIGTERM, lambda *_: exit(9))", "9 15"),
), ids=("term", "int", "the job acts on it"))
def test_a_signal_to_the_launcher_ends_the_job(number, job, said):
    launcher = subprocess.Popen([sys.executable, "-c", PROGRAM, job], text=True, stdout=subprocess.PIPE)
    try:
        assert launcher.stdout.readline() == "up\n"
        launcher.send_signal(number)
        assert launcher.communicate(timeout=30)[0] == said + "\n"
    finally:
        launcher.kill()


@pytest.mark.parametrize("code, ended_by, note, result", (
    (0, None, None, 0),
    (3, None, None, 3),
    (9, None, "3", 3),
    (137, None, "4", 4),
    (137, None, None, 4),
    (9, None, None, 4),
    (-9, None, None, 4),
    (255, None, None, 255),
    (9, signal.SIGINT, "4", 130),
    (143, signal.SIGTERM, None, 143),
))
def test_the_code_of_the_job(code, ended_by, note, result, tmp_path):
    if note is not None:
        (tmp_path / watched.FIRST).write_text(note)
    assert exit_code(code, ended_by, str(tmp_path)) == result


def test_cores_are_those_of_this_process():
    assert 1 <= cores() <= os.cpu_count()
