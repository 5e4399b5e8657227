"""Exceptions and exits in the middle of requests, and messages that fit no inbox: nothing crashes, nobody else is
blamed."""

import re
import socket

import pytest

from tests.mpi.jobs import HERE, run_job

SCRIPT = str(HERE / "interrupted.py")
HOST = socket.gethostname()
IN_ORDER = "came to the end\n"


def interrupted(rank, place, way, folder, ranks=3):
    """Run the script; returns the job and the sentences of its ranks."""
    job = run_job(ranks, [SCRIPT, str(rank), place, way, str(folder)],
                  env={"FLEET_MPI_SERVERS": "1", "FLAGS_rpc_deadline": "60000"})
    return job, [line for line in job.err.splitlines() if re.match(r"fleet_mpi: rank \d+ \(", line)]


@pytest.mark.parametrize("rank, place, who, what", (
    (1, "save", "worker 0", "a save"), (0, "serving", "server 0", "serving")))
def test_to_leave_in_the_middle_with_code_0_is_no_success(tmp_path, rank, place, who, what):
    job, said = interrupted(rank, place, "exit", tmp_path)
    assert job.code == 1 and job.seconds < 30 and IN_ORDER not in job.out, job.story()
    assert len(said) == 1 and re.match(rf"fleet_mpi: rank {rank} \({who}, host {HOST}, step \d\): left in the middle "
                                       rf"of {what} "
                                       rf"with exit code 0$", said[0]), job.story()
    last = max(tmp_path.iterdir(), key=lambda folder: int(folder.name), default=tmp_path)
    assert not [path for path in last.rglob("*") if path.is_file()], "an incomplete save is there"


def test_to_leave_in_a_step_lets_the_others_go_on(tmp_path):
    job, said = interrupted(2, "step", "exit", tmp_path)
    assert job.code == 0 and not said, job.story()
    assert [IN_ORDER in rank.out for rank in job.ranks] == [True, True, False], job.story()


def test_a_worker_that_goes_on_after_an_interruption_is_none_the_worse(tmp_path):
    job, said = interrupted(1, "step,save,load", "catch", tmp_path)
    assert job.code == 0 and not said and job.out.count(IN_ORDER) == 3, job.story()
    assert job.ranks[1].out == "".join(f"interrupted in a {one}\n"
                                       for one in ("step", "save", "load")) + IN_ORDER, job.story()


def test_a_worker_that_was_interrupted_while_it_sent_says_so_when_it_goes_on(tmp_path):
    job, said = interrupted(1, "sending", "catch", tmp_path)
    assert job.code == 4 and job.seconds < 30, job.story()
    assert len(said) == 1 and re.search(rf"rank 1 \(worker 0, .*PeerLost: worker 0 \(rank 1, host {HOST}\) was "
                                        rf"interrupted by "
                                        r"Interruption in the middle of a request", said[0]), job.story()


def test_a_message_longer_than_the_inbox_is_refused_with_its_sender(tmp_path):
    job, said = interrupted(2, "sending", "long", tmp_path)
    assert job.code == 4 and job.seconds < 30, job.story()
    assert len(said) == 1 and re.search(rf"rank 0 \(server 0, .*PeerLost: worker 1 \(rank 2, host {HOST}\) sent a "
                                        rf"message longer "
                                        r"than the \d+ bytes", said[0]), job.story()
