"""mpirun's own words among those of the ranks, in whatever pieces they come."""

import pytest

from fleet_mpi.launch.boxes import Boxes

OPEN_MPI = b"-" * 74 \
    + b"\nprterun detected that one or more processes exited with non-zero status,\n\n   Exit code:    7\n" \
    + b"-" * 74 + b"\n"
MPICH = b"\n" + b"=" * 83 \
    + b"\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   EXIT CODE: 9\n" + b"=" * 83 \
    + b"\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\nThis typically refers to a problem " \
    b"with your application.\nPlease see the FAQ page for debugging suggestions\n"
LINES = b"[mpiexec@vm] ui_cmd_cb (pmiserv_pmci.c:51): Launch proxy failed.\n" \
    b"[vm:10103] PMIX ERROR: PMIX_ERR_UNREACH in file ptl_base_connection_hdlr.c at line 121\n"
TABLE = b"-" * 60 + b"\nname  loss\n" + b"-" * 60 + b"\n" + b"=" * 60 + b"\nw 0.5\n"


def fed(data, size):
    """(what is shown, what is held) of data that comes in pieces of this size."""
    boxes = Boxes()
    shown = b"".join(boxes.passed(data[start:start + size]) for start in range(0, len(data), size))
    return shown + boxes.rest(), boxes.held


@pytest.mark.parametrize("own", (OPEN_MPI, MPICH), ids=("Open MPI", "MPICH"))
@pytest.mark.parametrize("size", (1, 7, 50, 10000))
def test_a_box_is_held_back_in_whatever_pieces_it_comes(own, size):
    shown, held = fed(b"first\n" + own + b"last\n", size)
    left = b"This typically refers"  # single lines are known by their whole, which is one write of mpirun
    assert b"TERMINATION" not in shown and b"prterun" not in shown
    assert shown.startswith(b"first\n") and shown.endswith(b"last\n")
    if size == 10000:
        assert (shown, held) == (b"first\nlast\n", own) and left not in shown


def test_single_lines_of_mpirun_are_held_back_too():
    assert fed(b"one\n" + LINES + b"two\n", 10000) == (b"one\ntwo\n", LINES)


@pytest.mark.parametrize("size", (1, 7, 10000))
def test_tables_of_the_ranks_pass(size):
    assert fed(TABLE, size) == (TABLE, b"")


def test_what_is_no_box_passes_at_once():
    boxes = Boxes()
    assert boxes.passed(b"step 1\rstep") == b"step 1\rstep" and boxes.passed(b" 2 ---") == b" 2 ---"
    assert boxes.passed(b"\n\n") == b"\n\n"


def test_a_box_that_does_not_end_is_shown_at_the_end():
    assert fed(OPEN_MPI[:-10], 10000) == (OPEN_MPI[:-10], b"")


@pytest.mark.parametrize("line",
                         (b"A daemon (pid 7) died unexpectedly",
                          b"A daemon failed to report back after being spawned."))
def test_daemons_that_did_not_start_are_mpiruns_business(line):
    box = b"-" * 60 + b"\n" + line + b"\n" + b"-" * 60 + b"\n"
    assert fed(box, 10000) == (b"", box)
