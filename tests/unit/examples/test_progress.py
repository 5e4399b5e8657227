"""The progress line: rewritten on a terminal, plain lines elsewhere, not too often."""

import io

import pytest

from fleet_mpi.examples.progress import Progress


class Screen(io.StringIO):
    """A stream that may be a terminal."""

    def __init__(self, is_terminal):
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal


class Clock:
    """Time that passes when told."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_a_terminal_gets_one_line_rewritten(clock):
    screen = Screen(True)
    progress = Progress("", screen, clock)
    for step in range(3):
        clock.now += 1.0
        progress.step(f"step {step}", 50)
    progress.end("done")
    assert screen.getvalue() == "\rstep 0\x1b[K\rstep 1  50 samples/s\x1b[K\rstep 2  50 samples/s\x1b[K\ndone\n"


def test_elsewhere_a_line_comes_every_two_seconds_with_the_rate_since_the_last(clock):
    screen = Screen(False)
    progress = Progress("", screen, clock)
    for step in range(6):
        clock.now += 1.0
        progress.step(f"step {step}", 30)
    progress.end()
    assert screen.getvalue() == "step 2  30 samples/s\nstep 4  30 samples/s\nstep 5  30 samples/s\n"


def test_the_first_step_counts_in_no_speed(clock):
    screen = Screen(False)
    progress = Progress("", screen, clock)
    for seconds in (9.0, 1.0, 1.0):
        clock.now += seconds
        progress.step("step", 30)
    assert screen.getvalue() == "step\nstep  30 samples/s\n"
    assert (progress.first_step_s, progress.seconds, progress.total, progress.speed) == (9.0, 2.0, 60, 30.0)


def test_a_single_step_is_shown_at_the_end(clock):
    screen = Screen(False)
    progress = Progress("", screen, clock)
    progress.step("step 0", 30)
    progress.end("done")
    assert screen.getvalue() == "step 0\ndone\n"


@pytest.mark.parametrize("mark", ("OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK"))
def test_a_terminal_that_a_launcher_made_is_a_log(clock, monkeypatch, mark):
    monkeypatch.setenv(mark, "1")
    screen = Screen(True)
    progress = Progress("", screen, clock)
    for _ in range(2):
        clock.now += 3.0
        progress.step("step", 30)
    progress.end("done")
    assert screen.getvalue() == "step\nstep  10 samples/s\ndone\n"


def test_an_end_without_steps_says_only_its_text(clock):
    screen = Screen(True)
    Progress("", screen, clock).end("nothing to do")
    assert screen.getvalue() == "nothing to do\n"


def test_a_name_says_who_speaks_and_leaves_other_lines_alone(clock):
    screen = Screen(True)
    progress = Progress("worker 1", screen, clock)
    for step in range(2):
        clock.now += 3.0
        progress.step(f"step {step}", 30)
    progress.end("done")
    assert screen.getvalue() == "worker 1: step 0\nworker 1: step 1  10 samples/s\nworker 1: done\n"
