"""A rank's watcher: what it says, notes and passes on. No MPI takes part."""

import os
import signal
import subprocess
import sys
import time

import pytest

from fleet_mpi.launch import watched
from fleet_mpi.ranks import ending


@pytest.fixture
def start(tmp_path):
    """Start a watcher over a Python program; its rank is 2, its notes go to tmp_path."""
    started = []

    def start(code, command=None, **more):
        environ = {**os.environ, "PMI_RANK": "2", watched.FOLDER: str(tmp_path), **more}
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
    assert not watched.leave_note("", watched.FIRST, "3")
    assert not watched.leave_note("/nowhere/at/all", watched.FIRST, "3")


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


COLLECTIVE = {watched.SERVERS: "0", watched.WORKER_LIST: "a:1,a:2,b:1,b:2", watched.PER_NODE: "2", watched.DEVICES: "0;1;0;1"}
WITH_SERVERS = {watched.SERVERS: "1", watched.WORKER_LIST: "a:2,b:2", watched.SERVER_LIST: "10.0.0.1:6170"}


def test_a_collective_rank_learns_its_number_its_label_and_its_device():
    assert watched.rank_variables(COLLECTIVE, "3") == {
        "PADDLE_TRAINER_ID": "3", "PADDLE_CURRENT_ENDPOINT": "b:2", "FLAGS_selected_gpus": "1", "PADDLE_GLOBAL_RANK": "3",
        "PADDLE_GLOBAL_SIZE": "4", "PADDLE_LOCAL_RANK": "1", "PADDLE_RANK_IN_NODE": "1", "PADDLE_LOCAL_SIZE": "2",
        "PADDLE_NNODES": "2"}


def test_servers_and_workers_learn_their_roles():
    assert watched.rank_variables(WITH_SERVERS, "0") == {
        "TRAINING_ROLE": "PSERVER", "PADDLE_TRAINING_ROLE": "PSERVER", "PADDLE_PSERVER_ID": "0", "POD_IP": "10.0.0.1",
        "PADDLE_PORT": "6170"}
    assert watched.rank_variables(WITH_SERVERS, "2") == {
        "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "1",
        "PADDLE_CURRENT_ENDPOINT": "b:2"}


def test_where_the_script_gives_roles_nothing_is_told():
    assert watched.rank_variables({watched.WORKER_LIST: "a:1"}, "0") == {}


def test_variables_of_another_role_are_not_inherited(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    strange = {"TRAINING_ROLE": "PSERVER", "POD_IP": "x", "PADDLE_TRAINER_ID": "9", watched.SERVER_LIST: "x:1"}
    assert set(watched.inherited({**strange, **COLLECTIVE})) == {"TRAINING_ROLE", "POD_IP", watched.SERVER_LIST}
    assert set(watched.inherited({**strange, **WITH_SERVERS})) == {"POD_IP"}
    assert watched.inherited(strange) == []


def test_the_variables_reach_the_rank(start):
    process = start("import os; print(os.environ['PADDLE_TRAINER_ID'], os.environ.get('POD_IP'))", POD_IP="x", **COLLECTIVE)
    assert process.communicate(timeout=30)[0] == "2 None\n"


SPEAKS = "import sys; print('one'); print('two', file=sys.stderr)"


@pytest.mark.parametrize("more, name, shown", (
    ({}, "workerlog.2", True),
    ({watched.ECHO: "none"}, "workerlog.2", False),
    ({**COLLECTIVE, watched.ECHO: "first"}, "workerlog.2", False),
    ({**COLLECTIVE, watched.ECHO: "first", "PMI_RANK": "0"}, "workerlog.0", True),
    ({**WITH_SERVERS, watched.ECHO: "first", "PMI_RANK": "1"}, "workerlog.0", True),
    ({**WITH_SERVERS, watched.ECHO: "first", "PMI_RANK": "0"}, "serverlog.0", False),
    ({**WITH_SERVERS, watched.ECHO: "all", "PMI_RANK": "0"}, "serverlog.0", True),
))
def test_output_goes_to_the_log_and_further_on_where_asked(start, tmp_path, more, name, shown):
    process = start(SPEAKS, **{watched.LOGS: str(tmp_path), **more})
    assert process.communicate(timeout=30) == (("one\n", "two\n") if shown else ("", ""))
    assert sorted((tmp_path / name).read_text().split()) == ["one", "two"]


@pytest.mark.parametrize("opened, kept", (("a", "old\none\n"), ("w", "one\n")))
def test_a_log_is_continued_or_written_anew(start, tmp_path, opened, kept):
    (tmp_path / "workerlog.2").write_text("old\n")
    start("print('one')", **{watched.LOGS: str(tmp_path), watched.OPENED: opened}).communicate(timeout=30)
    assert (tmp_path / "workerlog.2").read_text() == kept


def test_output_is_passed_on_as_it_comes(start, tmp_path):
    process = start("import sys; print('up'); sys.stdin.read()", **{watched.LOGS: str(tmp_path)})
    assert process.stdout.readline() == "up\n"
    process.kill()


def test_what_a_rank_leaves_running_is_not_waited_for(start, tmp_path):
    began = time.monotonic()
    process = start("import subprocess; print(subprocess.Popen(['sleep', '20']).pid)", **{watched.LOGS: str(tmp_path)})
    assert process.wait(timeout=30) == 0 and time.monotonic() - began < 15
    os.kill(int((tmp_path / "workerlog.2").read_text()), signal.SIGTERM)


def test_the_first_rank_that_fails_says_its_last_words(start, tmp_path):
    quiet = {watched.LOGS: str(tmp_path), watched.ECHO: "none"}
    process = start("import sys; print(*range(100), sep='\\n'); sys.exit(85)", **quiet)
    said = process.communicate(timeout=30)[1]
    lines = said.splitlines()
    assert lines[0] == (f"fleet_mpi: rank 2 on {os.uname().nodename} ended with exit code 85; the last words in "
                        f"{tmp_path}/workerlog.2:")
    assert lines[1:] == [f"    {number}" for number in range(100 - watched.LAST_LINES, 100)] and note(tmp_path) == "85"
    assert start("import sys; sys.exit(3)", **quiet).communicate(timeout=30)[1] == ""


def test_words_that_were_shown_are_not_said_again(start, tmp_path):
    process = start("import sys; print('oh'); sys.exit(85)", **{watched.LOGS: str(tmp_path)})
    out, err = process.communicate(timeout=30)
    assert out == "oh\n" and err.startswith("fleet_mpi: rank 2 on") and err.endswith("workerlog.2\n") and len(err.splitlines()) == 1


def test_a_rank_that_says_it_fails_is_heard_before_it_has_ended(start, tmp_path):
    process = start("import sys, time; sys.stderr.write('Traceback\\nfleet_mpi: rank 2 (worker 1, host x): ValueError: oh\\n')\n"
                    "time.sleep(60)", **{watched.LOGS: str(tmp_path), watched.ECHO: "none"})
    assert "rank 2 on" in process.stderr.readline() and process.stderr.readline() == "    Traceback\n"
    process.kill()


def test_failing_is_known_by_the_sentences_of_this_package_and_of_mpich(monkeypatch):
    monkeypatch.setattr(ending._watch, "name", lambda: "rank 1 (worker 0, host h, step 3)")
    assert watched.failing(b"\n" + ending.sentence(ValueError("oh")).encode())
    assert watched.failing(b"Abort(85) on node 1 (rank 1 in comm 0): application called MPI_Abort")
    assert not watched.failing(b"fleet_mpi: rank 0 has 2 thread(s) to compute with, rank 1 1: results may differ")


def test_a_log_that_cannot_be_written_is_a_sentence(start):
    process = start("print('never')", **{watched.LOGS: "/nowhere/at/all"})
    out, err = process.communicate(timeout=30)
    assert process.returncode == 1 and out == "" and "rank 2 on" in err and "cannot write its log" in err


@pytest.mark.parametrize("end", (
    "sys.exit(75)", "sys.stderr.write('fleet_mpi: rank 2 (host h): exit code 75\\n'); sys.exit(75)",
    "sys.stderr.write('fleet_mpi: rank 2 (host h): Preempted: saved\\n'); sys.exit(75)"))
def test_a_rank_that_was_preempted_has_not_failed(start, tmp_path, end):
    process = start(f"import sys; print('oh'); {end}", **{watched.LOGS: str(tmp_path), watched.ECHO: "none"})
    said = process.communicate(timeout=30)[1]
    assert said == f"fleet_mpi: rank 2 on {os.uname().nodename} was preempted: exit code 75\n" and note(tmp_path) == "75"
