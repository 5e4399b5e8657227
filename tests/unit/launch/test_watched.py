"""A rank's watcher: what it says, notes and passes on. No MPI takes part."""

import os
import signal
import sys
import time

import pytest

from fleet_mpi.launch import notes, watched

HOST = os.uname().nodename


def note(folder):
    """The note of the first rank that failed, or None."""
    path = folder / notes.FIRST
    return path.read_text() if path.exists() else None


def test_an_end_in_order_leaves_no_note(start, tmp_path):
    process = start("print('done')")
    assert process.communicate(timeout=30) == ("done\n", "")
    assert process.returncode == 0 and note(tmp_path) is None and not notes.has_cut_short(tmp_path)


def test_an_exit_code_is_passed_on_and_noted(start, tmp_path):
    process = start("import sys; sys.exit(85)")
    assert process.communicate(timeout=30) == ("", f"fleet_mpi: rank 2 on {HOST} ended with exit code 85\n")
    assert process.returncode == 85 and note(tmp_path) == "85"


def test_a_killed_rank_is_named_and_noted_as_a_lost_peer(start, tmp_path):
    process = start("import os; os.kill(os.getpid(), 9)")
    said = process.communicate(timeout=30)[1]
    assert said == f"fleet_mpi: rank 2 on {HOST} was killed by signal 9 (SIGKILL)\n"
    assert process.returncode == 4 and note(tmp_path) == "4"


def test_only_the_first_note_counts(start, tmp_path):
    (tmp_path / notes.FIRST).write_text("7")
    assert start("import sys; sys.exit(3)").wait(timeout=30) == 3
    assert note(tmp_path) == "7"


def test_a_signal_from_mpirun_is_passed_on_and_is_no_failure(start, tmp_path):
    process = start("import time; print('up', flush=True); time.sleep(60)")
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 143 and note(tmp_path) is None and notes.has_cut_short(tmp_path)


def test_a_rank_may_act_on_a_signal_and_go_on(start, tmp_path):
    process = start("import os, signal, sys, time\n"
                    "signal.signal(signal.SIGUSR1, lambda *_: (os.write(1, b'saved\\n'), sys.exit(0)))\n"
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


def test_a_rank_says_its_role_and_that_it_has_spoken_by_its_report(start, tmp_path):
    told = "import os, sys; os.write(int(os.environ['FLEET_MPI_LAUNCH_REPORT']), b'joined worker 0\\n{}'); {}"
    killed = start(told.format("", "os.kill(os.getpid(), 15)"))
    assert killed.communicate(timeout=30)[1] == (
        f"fleet_mpi: rank 2 (worker 0) on {HOST} was killed by signal 15 (SIGTERM)\n")
    (tmp_path / notes.FIRST).unlink()
    spoke = start(told.format("fails\\n", "sys.exit(3)"))
    assert spoke.communicate(timeout=30)[1] == "" and note(tmp_path) == "3"


def test_a_second_rank_that_ends_with_a_code_says_nothing(start, tmp_path):
    (tmp_path / notes.FIRST).write_text("7")
    assert start("import os; os._exit(3)").communicate(timeout=30) == ("", "")


@pytest.mark.parametrize("end, noted", (("ends", False), ("", True)))
def test_a_rank_that_ends_with_0_but_not_in_order_is_noted(start, tmp_path, end, noted):
    process = start(f"import os; os.write(int(os.environ['FLEET_MPI_LAUNCH_REPORT']), b'{end}\\n'); os._exit(0)")
    assert process.communicate(timeout=30) == ("", "") and process.returncode == 0
    said = notes.read_note(tmp_path, notes.VANISHED)
    assert said is None if not noted else said.startswith(f"fleet_mpi: rank 2 on {HOST} ended in the middle of the job")


def test_a_rank_that_leaves_with_0_after_it_has_joined_is_lost(start, tmp_path):
    process = start("import os; os.write(int(os.environ['FLEET_MPI_LAUNCH_REPORT']), b'joined worker 1\\n'); "
                    "os._exit(0)")
    assert process.communicate(timeout=30)[1].startswith(f"fleet_mpi: rank 2 (worker 1) on {HOST} ended in the middle")
    assert process.returncode == 4 and note(tmp_path) == "4"


def test_mpichs_mpirun_is_told_of_a_rank_that_failed(start):
    heard, line = os.pipe()
    os.set_inheritable(line, True)
    process = start("import os; os._exit(7)", close_fds=False, PMI_FD=str(line), MPI_LOCALNRANKS="3")
    assert process.wait(timeout=30) == 7
    assert os.read(heard, 100) == b"cmd=abort exitcode=7\n"
    os.close(heard)
    os.close(line)


def test_mpichs_mpirun_sees_that_the_line_of_a_rank_that_left_with_0_has_closed_before_it_sees_its_end(start):
    reads, line = os.pipe()
    os.set_inheritable(line, True)
    process = start("import os; os._exit(0)", close_fds=False, PMI_FD=str(line), MPI_LOCALNRANKS="3")
    os.close(line)
    assert os.read(reads, 1) == b""
    time.sleep(0.2)
    assert process.poll() is None
    os.close(reads)
    assert process.wait(timeout=30) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="by /proc")
def test_a_rank_and_its_watcher_go_with_mpirun(start, tmp_path):
    """In mpirun's place is a shell, which is killed."""
    code = "import os, time; print(os.getpid(), os.getppid(), flush=True); time.sleep(60)"
    command = [sys.executable, "-I", "-S", watched.__file__, sys.executable, "-c", code]
    mpirun = start("", program=["sh", "-c", '"$@"; exit $?', "sh", *command])
    pids = mpirun.stdout.readline().split()
    assert len(pids) == 2
    mpirun.kill()
    deadline = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.02)
