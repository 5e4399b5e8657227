"""How a process ends: every failure reaches all ranks with its sentence and code, an end in order says goodbye."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from fleet_mpi.ranks import ending

ROOT = Path(__file__).parents[3]

BEGINNING = """
import os, sys, threading
from fleet_mpi import errors
from fleet_mpi.ranks import ending

ending._READING_S = ending._ABORTING_S = 0
def abort(code):
    sys.stderr.write(f"aborted with {code}")
    sys.stderr.flush()
    os._exit(99)
ending.guard(abort, lambda: "rank 3 (worker 1, host h, step 17)")
ending.at_exit(lambda: sys.stderr.write("goodbye"))
print("trained")
"""


def run(code, beginning=BEGINNING):
    """Run a script that was begun as a rank."""
    return subprocess.run([sys.executable, "-c", beginning + textwrap.dedent(code)], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.mark.parametrize("code, number, cause", (
    ("raise ValueError('boom')", 1, "ValueError: boom"),
    ("raise errors.Stalled('server 0 does not answer')", 5, "Stalled: server 0 does not answer"),
    ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
    ("def body():\n    raise OSError('disk')\nthreading.Thread(target=body).start()\nthreading.Event().wait(30)", 1,
     "OSError: disk"),
    ("sys.exit(3)", 3, "exit code 3"), ("exit(4)", 4, "exit code 4"), ("quit(5)", 5, "exit code 5"),
    ("raise SystemExit(3)", 3, "exit code 3"), ("raise type('Mine', (SystemExit,), {})(3)", 3, "exit code 3"),
    ("sys.exit('no data')", 1, "exit code 1"), ("sys.exit(-1)", 255, "exit code 255"),
    ("import argparse\nargparse.ArgumentParser().parse_args(['--wrong'])", 2, "exit code 2"),
    ("ending.remember(6)", 6, "exit code 6")))
def test_a_failure_ends_all_ranks_with_its_sentence_and_code(code, number, cause):
    ended = run(code)
    assert ended.returncode == 99 and ended.stdout == "trained\n"
    assert ended.stderr.endswith(f"fleet_mpi: rank 3 (worker 1, host h, step 17): {cause}\naborted with {number}")
    assert "goodbye" not in ended.stderr


@pytest.mark.parametrize("leave", ("sys.exit(0)", "sys.exit()", "raise SystemExit", "exit(0)"))
def test_to_leave_with_code_0_in_the_middle_of_something_is_a_failure(leave):
    ended = run(f"with ending.amid('a save'), ending.amid('more'):\n    {leave}")
    assert ended.stderr.endswith("step 17): left in the middle of more with exit code 0\naborted with 1")


@pytest.mark.parametrize("code, end", (
    ("try:\n    with ending.amid('a save'):\n        sys.exit(0)\nexcept SystemExit:\n    pass", "goodbye"),
    ("with ending.amid('a save'):\n    pass\nsys.exit(0)", "goodbye"),
    ("with ending.amid('a save'):\n    sys.exit(3)", "exit code 3\naborted with 3")))
def test_only_what_was_left_half_done_counts(code, end):
    assert run(code).stderr.endswith(end)


@pytest.mark.parametrize("leave",
                         ("sys.exit(75)", "raise ending.LEAVING(75)", "ending.remember(75)\nraise ending.LEAVING(75)"))
def test_a_code_that_all_ranks_agreed_on_takes_none_of_them_down(leave):
    ended = run("ending.agree(75)\n" + leave)
    assert (ended.returncode, ended.stderr) == (75, "goodbye")


def test_another_code_than_the_one_agreed_on_is_a_failure():
    assert run("ending.agree(75)\nsys.exit(74)").stderr.endswith("aborted with 74")


def test_the_traceback_comes_before_the_sentence():
    lines = run("raise ValueError('boom')").stderr.splitlines()
    assert lines[0].startswith("Traceback") and lines.index("ValueError: boom") < len(lines) - 2


def test_what_sys_exit_has_to_say_is_said():
    assert run("sys.exit('no data')").stderr.startswith("no data\n")


@pytest.mark.parametrize("code", (
    "", "sys.exit()", "sys.exit(0)", "exit(0)", "exit()", "quit(0)", "raise SystemExit",
    "try:\n    sys.exit(3)\nexcept SystemExit as left:\n    assert left.code == 3",
    "try:\n    raise SystemExit(3)\nexcept SystemExit as left:\n    left.code = 0\n    raise",
    "threading.Thread(target=lambda: sys.exit(3)).start()"), ids=repr)
def test_an_end_in_order_says_goodbye(code):
    ended = run(code)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "trained\n", "goodbye")


def test_goodbyes_are_said_last_first_and_a_failing_one_ends_the_job():
    ended = run("ending.at_exit(lambda: 1 / 0)\nending.at_exit(lambda: print('first'))")
    assert ended.stdout == "trained\nfirst\n"
    assert ended.stderr.endswith("step 17): ZeroDivisionError: division by zero\naborted with 1")


def test_an_error_that_the_first_rank_tells_waits_for_it():
    ended = run("""
        ending._REPORTED_BY_PEER_S = 0.3
        error = errors.UsageError("all found this")
        error.reported_by_peer = True
        threading.Timer(0.1, lambda: (sys.stderr.write("rank 0 ends the job"), sys.stderr.flush(), os._exit(7))).start()
        raise error
        """)
    assert (ended.returncode, ended.stderr) == (7, "rank 0 ends the job")


@pytest.mark.parametrize("end", ("sys.exit(3)", "raise ValueError('boom')"))
def test_the_end_of_a_forked_process_is_not_the_end_of_the_job(end):
    ended = run(f"if os.fork() == 0:\n    {end}\nos.wait()\nprint('went on')")
    assert (ended.returncode, ended.stdout.count("went on")) == (0, 1)
    assert ended.stderr.count("goodbye") == 1 and "aborted" not in ended.stderr


def test_the_main_thread_says_no_goodbye_while_another_thread_ends_the_job():
    ended = run("""
        ending._READING_S, ending._ABORTING_S = 0.3, 10
        def body():
            raise OSError("disk")
        threading.Thread(target=body, daemon=True).start()
        while not ending._watch.failing:
            pass
        """)
    assert ended.returncode == 99 and "goodbye" not in ended.stderr and ended.stderr.endswith("aborted with 1")


def test_an_exit_function_that_the_script_took_before_is_watched_and_caught_as_ever():
    taken = "from sys import exit\n" + BEGINNING
    assert run("exit(3)", taken).stderr.endswith("exit code 3\naborted with 3")
    assert run("try:\n    exit(3)\nexcept SystemExit:\n    pass", taken).stderr == "goodbye"


def test_a_hook_of_the_script_is_kept():
    ended = run("",
                "import sys\nsys.excepthook = lambda *_: sys.stderr.write('mine ')" + BEGINNING
                + "raise ValueError('boom')")
    assert ended.stderr == "mine fleet_mpi: rank 3 (worker 1, host h, step 17): ValueError: boom\naborted with 1"


def test_a_hook_that_the_script_sets_later_does_not_hide_a_failure():
    ended = run("sys.excepthook = lambda *failed: sys.stderr.write('mine ')\nraise ValueError('boom')")
    assert ended.returncode == 99
    assert ended.stderr == "mine fleet_mpi: rank 3 (worker 1, host h, step 17): ValueError: boom\naborted with 1"


@pytest.mark.parametrize("code, number",
                         (("raise errors.EnvironmentProblem('mpirun')", 3), ("raise ValueError('boom')", 1),
                          ("sys.exit(4)", 4), ("raise SystemExit(5)", 5)))
def test_alone_an_error_gives_its_exit_code_and_no_sentence(code, number):
    ended = run(code, "import sys\nfrom fleet_mpi import errors\nfrom fleet_mpi.ranks import ending\n"
                      "ending.guard(None, lambda: '')\nending.guard(None, lambda: '')\n")
    assert ended.returncode == number and "fleet_mpi: " not in ended.stderr


def test_alone_goodbyes_are_said_too():
    assert run("ending.at_exit(lambda: print('goodbye'))", "from fleet_mpi.ranks import ending\n").stdout == "goodbye\n"


def test_released_hooks_are_those_of_before(monkeypatch):
    import threading
    ending.release()  # another test may have left them
    before = sys.excepthook, threading.excepthook, sys.exit, exit, SystemExit
    ending.guard(lambda code: None, lambda: "")
    assert sys.exit is not before[2] and issubclass(SystemExit, before[4]) and SystemExit is not before[4]
    ending.release()
    assert (sys.excepthook, threading.excepthook, sys.exit, exit, SystemExit) == before


@pytest.mark.parametrize("given, number",
                         ((None, 0), (0, 0), (3, 3), (256 + 7, 7), (-1, 255), ("text", 1), ((1, 2), 1)))
def test_what_the_system_gets_for_an_exit(given, number):
    assert ending.exit_code(given) == number
