"""The watcher of a machine's ranks: real processes are stopped, killed or end by themselves; it names the right one."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest

from fleet_mpi.launch import notes
from fleet_mpi.ranks import watcher
from fleet_mpi.ranks.watcher import Watcher

pytestmark = pytest.mark.skipif(sys.platform != "linux",
                                reason="what the kernel tells of processes is read as Linux tells it")

DEADLINE_S = 1.5  # long beside the pauses of a machine that does other things too
# A rank as the watcher sees it: it says who it is, then does what its standard input says, and obeys.
RANK = textwrap.dedent("""
    import os, sys, threading
    from fleet_mpi.ranks import lifeline
    lifeline.connect("\\0" + sys.argv[1], sys.argv[2], float(sys.argv[3]))
    print("connected" if lifeline.is_connected() else "alone", flush=True)
    exec(sys.stdin.readline())
    """)


class Machine:
    """Ranks as processes of their own, and a watcher in this one. ``said`` is what it wrote, ``code`` how it ended."""

    def __init__(self, count, **options):
        self.address, self.said = f"\0fleet_mpi test {os.getpid()} {time.monotonic_ns()}", []
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(self.address)
        listener.listen(count)
        self.listener = listener
        self.watcher = Watcher(listener, count, write=self.said.append, **options)
        self.ranks = [subprocess.Popen([sys.executable, "-c", RANK, self.address[1:], f"rank {number} (host h)",
                                        str(DEADLINE_S)],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                      for number in range(count)]
        while self.watcher.came < count:
            self.watcher.turn(0.02)
        for rank in self.ranks:
            assert rank.stdout.readline() == "connected\n"

    def does(self, number, code):
        """Let one rank run a line of Python."""
        self.ranks[number].stdin.write(code + "\n")
        self.ranks[number].stdin.flush()

    def watch(self, seconds=30.0):
        """Watch until all have ended, or so long."""
        until = time.monotonic() + seconds
        try:
            while not self.watcher._is_over() and time.monotonic() < until:
                self.watcher.turn(0.02)
        except SystemExit:
            pass  # it has ended the job

    def codes(self):
        """How the ranks have ended, as Popen tells it."""
        return [rank.wait(30) for rank in self.ranks]

    def close(self):
        """Nothing stays."""
        self.listener.close()
        for rank in self.ranks:
            rank.kill()
        self.watcher._wait_for_ends(30)
        for rank in self.ranks:
            rank.stdin.close()
            rank.stdout.close()
            rank.wait()


@pytest.fixture
def machine():
    """Makes machines that are cleaned up."""
    made = []

    def make(*args, **options):
        made.append(Machine(*args, **options))
        return made[-1]
    yield make
    for one in made:
        one.close()


SLEEP, LEAVE = "import time; time.sleep(60)", "lifeline.say_bye_at_exit()"


def test_ranks_that_end_in_order_end_the_watcher_without_a_word(machine):
    here = machine(3)
    for number in range(3):
        here.does(number, LEAVE)
    here.watch()
    assert here.codes() == [0, 0, 0] and not here.said


def test_a_stopped_rank_is_named_and_all_end_with_the_code_of_a_stall(machine):
    here = machine(3)
    here.does(0, SLEEP), here.does(2, SLEEP)
    here.does(1, "import signal; os.kill(os.getpid(), signal.SIGSTOP)")
    began = time.monotonic()
    here.watch()
    assert time.monotonic() - began < DEADLINE_S + 5
    assert len(here.said) == 1 and here.said[0].startswith("fleet_mpi: rank 1 (host h): Stalled: this process was "
                                                           "stopped")
    assert here.codes() == [5, 5, 5]


def test_where_python_cannot_run_the_signal_ends_a_rank_with_the_same_code(machine):
    here = machine(2)
    here.does(0, "import ctypes; ctypes.PyDLL(None).sleep(60)")  # holds the interpreter's lock, as MPI_Init does
    here.does(1, "import signal; os.kill(os.getpid(), signal.SIGSTOP)")
    here.watch()
    assert here.codes() == [5, 5] and watcher.END_AT_ONCE == 5


@pytest.mark.parametrize("junk", (b"junk", b"name\tx", b"name\tx\ty", b"\xff\xfe\t\t1", b"a\tb\tc\td"))
def test_what_a_rank_cannot_mean_is_passed_over(machine, junk):
    here = machine(1)
    here.does(0, f"os.write(lifeline._line, {junk!r}); lifeline.say_bye_at_exit()")
    here.watch()
    assert here.codes() == [0] and not here.said


def test_a_rank_that_goes_on_in_time_is_not_named(machine):
    here = machine(2)
    here.does(0, "import time; time.sleep(1.5); lifeline.say_bye_at_exit()")
    here.does(1, "import time; time.sleep(1.5); lifeline.say_bye_at_exit()")
    here.ranks[1].send_signal(signal.SIGSTOP)
    here.watch(0.4)
    here.ranks[1].send_signal(signal.SIGCONT)
    here.watch()
    assert here.codes() == [0, 0] and not here.said


def test_a_job_that_is_suspended_as_a_whole_is_left_alone(machine):
    here = machine(2)
    for number in range(2):
        here.does(number, "import time; time.sleep(0.2); lifeline.say_bye_at_exit()")
        here.ranks[number].send_signal(signal.SIGSTOP)
    here.watch(2 * DEADLINE_S)
    assert not here.said
    for rank in here.ranks:
        rank.send_signal(signal.SIGCONT)
    here.watch()
    assert here.codes() == [0, 0] and not here.said


def test_the_last_rank_that_is_left_is_named_when_it_is_stopped(machine):
    here = machine(2)
    here.does(0, LEAVE)
    here.does(1, "lifeline.say_bye_at_exit(); import signal; os.kill(os.getpid(), signal.SIGSTOP)")
    here.watch()
    assert here.said and here.said[0].startswith("fleet_mpi: rank 1 (host h): Stalled")


@pytest.mark.parametrize("code, how", (
    ("import signal; os.kill(os.getpid(), signal.SIGKILL)", "was killed by signal 9 (SIGKILL)"),
    ("import signal; os.kill(os.getpid(), signal.SIGSEGV)", "was killed by signal 11 (SIGSEGV)"),
    ("os._exit(7)", "ended with exit code 7 and without a word (os._exit?)"),
    ("os._exit(0)", "ended without a word (killed, or os._exit)")))
def test_a_lost_rank_is_named_and_the_others_end(machine, code, how):
    here = machine(2)
    here.does(0, SLEEP)
    here.does(1, code)
    here.watch()
    assert here.said == [f"fleet_mpi: rank 1 (host h) {how}\n"]
    assert here.codes()[0] == 4


def test_the_one_that_left_by_itself_is_named_before_those_that_a_launcher_killed(machine):
    here = machine(2)
    here.does(0, "import signal; os.kill(os.getpid(), signal.SIGKILL)")
    here.does(1, "os._exit(3)")
    for rank in here.ranks:
        os.waitid(os.P_PID, rank.pid, os.WEXITED | os.WNOWAIT)  # both have ended before the watcher looks
    here.watch()
    assert here.said == ["fleet_mpi: rank 1 (host h) ended with exit code 3 and without a word (os._exit?)\n"]


def test_a_rank_that_has_reported_its_failure_is_not_reported_again(machine):
    here = machine(2)
    here.does(0, "lifeline.say_reported(); os._exit(1)")
    here.does(1, "import signal; os.kill(os.getpid(), signal.SIGKILL)")
    here.watch()
    assert not here.said


@pytest.mark.parametrize("way, how", (("os._exit(0)", "ended without a word (killed, or os._exit)"),
                                      ("os.kill(os.getpid(), 9)", "was killed by signal 9 (SIGKILL)")))
@pytest.mark.parametrize("first", (0, 2))
def test_the_first_to_leave_before_mpi_finalize_is_named(machine, first, way, how):
    here = machine(3)
    for number in sorted(range(3),
                         key=lambda number: number != first):   # the others wait for it, and are killed by mpirun
        here.does(number, f"lifeline.say_bye_at_exit(); {way if number == first else 'os.kill(os.getpid(), 9)'}")
        os.waitid(os.P_PID, here.ranks[number].pid, os.WEXITED | os.WNOWAIT)  # the watcher sees all at once
    here.watch()
    assert here.said == [f"fleet_mpi: rank {first} (host h) {how}\n"]


def test_who_has_said_something_just_before_is_not_taken_for_the_first_to_end(machine):
    here = machine(3)
    for number in (0, 1):
        here.does(number,
                  f"lifeline.rename('rank {number} (host h)', {DEADLINE_S}); sys.stdin.readline(); "
                  f"os.kill(os.getpid(), 9)")
        here.watcher._take_in(5)
    here.does(2, "os.kill(os.getpid(), 9)")
    os.waitid(os.P_PID, here.ranks[2].pid, os.WEXITED | os.WNOWAIT)
    for number in (0, 1):
        here.does(number, "")
        os.waitid(os.P_PID, here.ranks[number].pid, os.WEXITED | os.WNOWAIT)
    here.watch()
    assert here.said == ["fleet_mpi: rank 2 (host h) was killed by signal 9 (SIGKILL)\n"]


def test_one_that_was_collected_before_it_was_seen_is_not_taken_for_one_that_left_by_itself(machine):
    here = machine(2)
    for number in (1, 0):
        here.does(number, "os.kill(os.getpid(), 15)")
        os.waitid(os.P_PID, here.ranks[number].pid, os.WEXITED | os.WNOWAIT)
    here.ranks[0].wait()  # as a launcher does at once
    here.watcher.launcher_line = 99  # MPICH's, which gives no time
    here.watch()
    assert here.said == ["fleet_mpi: rank 1 (host h) was killed by signal 15 (SIGTERM)\n"]


def test_one_that_left_before_all_had_come_is_named_and_mpich_is_told(machine):
    ours, theirs = socket.socketpair()
    here = machine(1, launcher_line=theirs.fileno())
    here.watcher.count = 2
    here.does(0, "os._exit(7)")
    here.watch()
    assert here.said == ["fleet_mpi: rank 0 (host h) ended with exit code 7 and without a word (os._exit?)\n"]
    assert ours.recv(100) == b"cmd=abort exitcode=4\n"
    ours.close(), theirs.close()


def test_an_exit_code_that_all_agreed_on_is_an_end_in_order(machine):
    here = machine(1)
    here.does(0, "lifeline.say_bye_at_exit(75); sys.exit(75)")
    here.watch()
    assert not here.said


def test_another_exit_code_than_it_said_is_not(machine):
    here = machine(1)
    here.does(0, "lifeline.say_bye_at_exit(); sys.exit(7)")
    here.watch()
    assert here.said == ["fleet_mpi: rank 0 (host h) ended with exit code 7 and without a word (os._exit?)\n"]


def test_a_process_that_a_rank_starts_is_no_rank(machine):
    here = machine(1)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(here.address)
    here.does(0, "import time; time.sleep(0.5); lifeline.say_bye_at_exit()")
    here.watch()
    assert connection.recv(64) == b"" and here.codes() == [0] and not here.said
    connection.close()


def test_the_watcher_goes_on_where_nobody_reads_what_it_says(machine, monkeypatch):
    ours, theirs = os.pipe()
    os.close(ours)
    kept = os.dup(2)
    here = machine(2)
    here.watcher.write = watcher._write
    here.does(0, SLEEP)
    here.does(1, "import signal; os.kill(os.getpid(), signal.SIGSTOP)")
    os.dup2(theirs, 2)
    try:
        here.watch()
    finally:
        os.dup2(kept, 2)
        os.close(kept), os.close(theirs)
    assert here.codes() == [5, 5]


def test_ranks_that_a_launcher_ends_together_are_not_named(machine):
    here = machine(2)
    for rank in here.ranks:
        rank.send_signal(signal.SIGTERM)
    here.watch()
    assert here.codes() == [-signal.SIGTERM] * 2 and not here.said


def test_before_all_have_come_somebody_else_may_be_the_cause(machine):
    here = machine(2)
    here.watcher.count = 3
    here.does(0, "os._exit(7)")
    here.does(1, LEAVE)
    here.watch()
    assert not here.said


def test_one_that_left_with_0_before_all_had_come_is_the_cause_itself(machine):
    here = machine(1)
    here.watcher.count = 2
    here.does(0, "os._exit(0)")
    here.watch()
    assert here.said == ["fleet_mpi: rank 0 (host h) ended without a word (killed, or os._exit)\n"]


def test_our_launcher_gets_the_sentence_in_case_that_nobody_says_it(machine, monkeypatch, tmp_path):
    monkeypatch.setenv(notes.FOLDER, str(tmp_path))
    here = machine(2)
    here.does(0, LEAVE)
    here.does(1, "os._exit(7)")
    here.watch()
    assert not here.said
    assert notes.read_note(tmp_path,
                           notes.VANISHED) == ("fleet_mpi: rank 1 (host h) ended with exit code 7 and without a "
                                               "word (os._exit?)")


def test_our_launcher_is_told_the_code_so_that_it_blames_nobody_else(machine, monkeypatch, tmp_path):
    monkeypatch.setenv(notes.FOLDER, str(tmp_path))
    here = machine(2)
    here.does(0, SLEEP)
    here.does(1, "import signal; os.kill(os.getpid(), signal.SIGSTOP)")
    here.watch()
    assert notes.first_code(tmp_path) == 5 and not notes.leave_note(tmp_path, notes.FIRST, "4", 0)


def test_a_phase_that_takes_too_long_ends_the_job(machine):
    here = machine(1)
    here.does(0,
              "import ctypes; here = lifeline.phase('MPI_Init', 0.3); here.__enter__(); ctypes.PyDLL(None).sleep(60)")
    here.watch()
    assert here.said[0].startswith("fleet_mpi: rank 0 (host h): Stalled: MPI_Init took too long")
    assert here.codes() == [5]


def test_a_rank_that_ends_in_order_while_another_starts_mpi_is_named(machine):
    here = machine(2)
    here.does(0, "import ctypes; here = lifeline.phase('MPI_Init', 60); here.__enter__(); ctypes.PyDLL(None).sleep(60)")
    here.watch(0.5)
    here.does(1, LEAVE)
    here.watch()
    assert here.said == ["fleet_mpi: rank 1 (host h) has ended before the other ranks had started MPI\n"]


def test_mpich_is_told_to_abort_with_the_code(machine):
    ours, theirs = socket.socketpair()
    here = machine(2, launcher_line=theirs.fileno())
    here.does(0, SLEEP)
    here.does(1, "import signal; os.kill(os.getpid(), signal.SIGSTOP)")
    here.watch()
    assert ours.recv(100) == b"cmd=abort exitcode=5\n"
    ours.close(), theirs.close()


def test_what_was_printed_is_not_lost(machine):
    here = machine(2)
    here.does(0, "print('a line', end=''); " + SLEEP)
    here.does(1, "import signal; os.kill(os.getpid(), signal.SIGSTOP)")
    here.watch()
    assert here.ranks[0].stdout.read() == "a line"


@pytest.mark.parametrize("sign, is_seen_alive", (("{mapped}; lifeline.rename('rank 0', 1)", True),
                                                 ("with lifeline.phase('MPI_Init', 9): {mapped}", True),
                                                 ("with lifeline.phase('MPI_Init', 9): {mapped}", False)))
def test_memory_that_killed_ranks_shared_is_removed_and_nobody_elses(machine, monkeypatch, sign, is_seen_alive):
    own, foreign = (f"/dev/shm/mpich_test{os.getpid()}_{number}" for number in range(2))
    for path in (own, foreign):
        with open(path, "wb") as file:
            file.write(bytes(4096))
    try:
        here = machine(1)
        mapped = f"file = open({own!r}, 'r+b'); kept = mmap.mmap(file.fileno(), 4096)"
        pause = "time.sleep(0.5)" if is_seen_alive else ""
        lines = f"import mmap, time\n{sign.format(mapped=mapped)}\n{pause}\nos.kill(os.getpid(), 9)"
        here.does(0, f"exec({lines!r})")
        if not is_seen_alive:
            here.ranks[0].wait(30)
        monkeypatch.setattr(watcher, "LOOK_EVERY_S", 0.02)
        here.watcher.run()
        assert not os.path.exists(own) and os.path.exists(foreign)
    finally:
        for path in (own, foreign):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def test_memory_of_a_job_of_mpich_is_removed_though_nobody_has_seen_it_mapped(machine, monkeypatch, tmp_path):
    own = {"mpich_shm_d6780723_0", "mpich_vci_d6780723_0"}  # as MPICH 5.0.2 called them in a job of this name
    foreign = {"mpich_shm_d6780724_0", "mpich_shm_d67807230_0", "sm_segment.d6780723_0"}
    for name in own | foreign:
        (tmp_path / name).touch()
    monkeypatch.setattr(watcher, "MEMORY", str(tmp_path))
    assert watcher.segments_of_job("") == set()
    here = machine(1, job="kvs_8479_0_1728354700_vm")
    here.does(0, "os.kill(os.getpid(), 9)")
    here.watcher.run()
    assert {path.name for path in tmp_path.iterdir()} == foreign


def test_who_is_in_mpi_init_is_held_when_another_ends_the_job(machine):
    here = machine(2)
    here.does(0, "exec('import time\\nwith lifeline.phase(\"MPI_Init\", 9): time.sleep(60)')")
    while not any(rank.phase for rank in here.watcher.ranks.values()):
        here.watcher.turn(0.02)
    here.does(1, "lifeline.say_reported(); import time; time.sleep(0.5); os._exit(1)")
    here.watcher.turn(5)
    assert os.waitid(os.P_PID, here.ranks[0].pid, os.WSTOPPED | os.WNOWAIT).si_status == signal.SIGSTOP


def test_a_process_that_a_script_forks_off_is_no_rank(machine):
    here = machine(1)
    here.does(0, "import time; os.fork() or time.sleep(0.5) or os._exit(0); lifeline.say_bye_at_exit(); os.wait()")
    here.watch()
    assert here.codes() == [0] and not here.said
