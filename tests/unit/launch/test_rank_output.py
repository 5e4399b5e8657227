"""A rank's output: its log, what is shown of it, and its last words."""

import os
import signal
import time

import pytest

from fleet_mpi.errors import Preempted
from fleet_mpi.launch import notes, rank_output, rank_roles
from fleet_mpi.ranks import ending

COLLECTIVE = {rank_roles.SERVERS: "0", rank_roles.WORKER_LIST: "a:1,a:2,b:1,b:2", rank_roles.PER_NODE: "2"}
WITH_SERVERS = {rank_roles.SERVERS: "1", rank_roles.WORKER_LIST: "a:2,b:2", rank_roles.SERVER_LIST: "10.0.0.1:6170"}
SPEAKS = "import sys; print('one'); print('two', file=sys.stderr)"


def test_the_code_that_asks_for_a_new_start_is_that_of_the_error():
    # Written twice: this module runs before every rank, and imports nothing that takes time.
    assert rank_output.PREEMPTED == Preempted.exit_code


@pytest.mark.parametrize("more, name, shown", (
    ({}, "ranklog.2", True),
    ({rank_output.ECHO: "none"}, "ranklog.2", False),
    ({**COLLECTIVE, rank_output.ECHO: "first"}, "workerlog.2", False),
    ({**COLLECTIVE, rank_output.ECHO: "first", "PMI_RANK": "0"}, "workerlog.0", True),
    ({**WITH_SERVERS, rank_output.ECHO: "first", "PMI_RANK": "1"}, "workerlog.0", True),
    ({**WITH_SERVERS, rank_output.ECHO: "first", "PMI_RANK": "0"}, "serverlog.0", False),
    ({**WITH_SERVERS, rank_output.ECHO: "all", "PMI_RANK": "0"}, "serverlog.0", True),
))
def test_output_goes_to_the_log_and_further_on_where_asked(start, tmp_path, more, name, shown):
    process = start(SPEAKS, **{rank_output.LOGS: str(tmp_path), **more})
    assert process.communicate(timeout=30) == (("one\n", "two\n") if shown else ("", ""))
    assert sorted((tmp_path / name).read_text().split()) == ["one", "two"]


@pytest.mark.parametrize("opened, kept", (("a", "old\none\n"), ("w", "one\n")))
def test_a_log_is_continued_or_written_anew(start, tmp_path, opened, kept):
    (tmp_path / "ranklog.2").write_text("old\n")
    start("print('one')", **{rank_output.LOGS: str(tmp_path), rank_output.OPENED: opened}).communicate(timeout=30)
    assert (tmp_path / "ranklog.2").read_text() == kept


def test_output_is_passed_on_as_it_comes(start, tmp_path):
    process = start("import sys; print('up'); sys.stdin.read()", **{rank_output.LOGS: str(tmp_path)})
    assert process.stdout.readline() == "up\n"
    process.kill()


def test_what_a_rank_leaves_running_is_not_waited_for(start, tmp_path):
    began = time.monotonic()
    process = start("import subprocess; print(subprocess.Popen(['sleep', '20']).pid)",
                    **{rank_output.LOGS: str(tmp_path)})
    assert process.wait(timeout=30) == 0 and time.monotonic() - began < 15
    os.kill(int((tmp_path / "ranklog.2").read_text()), signal.SIGTERM)


def test_the_first_rank_that_fails_says_its_last_words(start, tmp_path):
    quiet = {rank_output.LOGS: str(tmp_path), rank_output.ECHO: "none"}
    process = start("import sys; print(*range(100), sep='\\n'); sys.exit(85)", **quiet)
    said = process.communicate(timeout=30)[1]
    lines = said.splitlines()
    assert lines[0] == (f"fleet_mpi: rank 2 on {os.uname().nodename} ended with exit code 85; the last words in "
                        f"{tmp_path}/ranklog.2:")
    assert lines[1:] == [f"    {number}"
                         for number in range(100 - rank_output.LAST_LINES, 100)] and notes.first_code(tmp_path) == 85
    assert start("import sys; sys.exit(3)", **quiet).communicate(timeout=30)[1] == ""


def test_words_that_were_shown_are_not_said_again(start, tmp_path):
    process = start("import sys; print('oh'); sys.exit(85)", **{rank_output.LOGS: str(tmp_path)})
    out, err = process.communicate(timeout=30)
    assert out == "oh\n" and len(err.splitlines()) == 1
    assert err.startswith("fleet_mpi: rank 2 on") and err.endswith("ranklog.2\n")


def test_a_rank_that_says_it_fails_is_heard_before_it_has_ended(start, tmp_path):
    process = start("import sys, time; sys.stderr.write('Traceback\\nfleet_mpi: rank 2 (worker 1, host x): ValueError: "
                    "oh\\n')\ntime.sleep(60)", **{rank_output.LOGS: str(tmp_path), rank_output.ECHO: "none"})
    assert "rank 2 on" in process.stderr.readline() and process.stderr.readline() == "    Traceback\n"
    process.kill()


def test_failing_is_known_by_the_sentences_of_this_package_and_of_mpich(monkeypatch):
    monkeypatch.setattr(ending._watch, "name", lambda: "rank 1 (worker 0, host h, step 3)")
    assert rank_output.failing(b"\n" + ending.sentence(ValueError("oh")).encode())
    assert rank_output.failing(b"Abort(85) on node 1 (rank 1 in comm 0): application called MPI_Abort")
    assert not rank_output.failing(b"fleet_mpi: rank 0 has 2 thread(s) to compute with, rank 1 1: results may differ")


def test_a_log_that_cannot_be_written_is_a_sentence(start):
    process = start("print('never')", **{rank_output.LOGS: "/nowhere/at/all"})
    out, err = process.communicate(timeout=30)
    assert process.returncode == 1 and out == "" and "rank 2 on" in err and "cannot write its log" in err


@pytest.mark.parametrize("end", (
    "sys.exit(75)", "sys.stderr.write('fleet_mpi: rank 2 (host h): exit code 75\\n'); sys.exit(75)",
    "sys.stderr.write('fleet_mpi: rank 2 (host h): Preempted: saved\\n'); sys.exit(75)"))
def test_a_rank_that_was_preempted_has_not_failed(start, tmp_path, end):
    process = start(f"import sys; print('oh'); {end}", **{rank_output.LOGS: str(tmp_path), rank_output.ECHO: "none"})
    said = process.communicate(timeout=30)[1]
    assert said == f"fleet_mpi: rank 2 on {os.uname().nodename} was preempted: exit code 75\n"
    assert notes.first_code(tmp_path) == 75


def test_a_full_disk_is_said_once_and_the_rank_goes_on(start, tmp_path):
    (tmp_path / "ranklog.2").symlink_to("/dev/full")
    process = start("import time\nfor number in range(3):\n    print(number)\n    time.sleep(0.1)",
                    **{rank_output.LOGS: str(tmp_path), "PYTHONUNBUFFERED": "1"})
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0 and out.split() == ["0", "1", "2"]
    assert err == (f"fleet_mpi: the log of rank 2 on {os.uname().nodename} ends here, the rank goes on: "
                   f"{tmp_path}/ranklog.2: No space left on device\n")
