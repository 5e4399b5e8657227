"""The fault matrix of jobs without servers: whatever one worker does, at any moment, the job ends, and says why.

Every cell is a job of ``faults/script.py`` on three ranks with a deadline that is far away, unless it is about stalls.
"""

import socket

import pytest

from tests.mpi.test_faults import ENDLESS, FAILED, IN_ORDER, LEFT, SOON, faulty as served

HOST = socket.gethostname()


def faulty(rank, moment, fault, steps=10, **options):
    """Run the script without servers."""
    return served(rank, moment, fault, steps, mode=options.get("FLEET_MPI_ALLREDUCE", ""), **options)


def test_all_workers_end_together():
    ended = faulty(1, "never", "nothing")
    assert ended.with_code(0) and all(IN_ORDER in rank.out
                                      for rank in ended.job.ranks) and not ended.said, ended.job.story()


def test_a_worker_that_is_slow_is_waited_for():
    ended = faulty(1, "step 3", "nap", FLEET_MPI_ALLREDUCE="fast", FAULTS_ROWS="1")
    assert ended.job.code == 0 and not ended.said, ended.job.story()


# ---------------------------------------------------------------------- failures

@pytest.mark.parametrize("rank, moment, fault, code, who, cause", (
    (1, "after init", "raise", 1, "(worker 1, host {host})", FAILED),
    (0, "step 7", "sys.exit(3)", 3, "(worker 0, host {host}, step 7)", LEFT),
    (2, "end", "raise", 1, "(worker 2, host {host}, step 10)", FAILED)))
def test_a_failure_ends_the_job_at_once_with_its_code_and_one_sentence(rank, moment, fault, code, who, cause):
    ended = faulty(rank, moment, fault, 10 if moment == "end" else ENDLESS)
    assert ended.with_code(code), ended.job.story()
    assert ended.says(f"fleet_mpi: rank {rank} {who.format(host=HOST)}", cause), ended.job.story()


# ---------------------------------------------------------------------- a worker that has left, or goes another way

@pytest.mark.parametrize("rank, moment, variables, who, what", (
    (1, "after init", {}, 0, "all_gather: worker 1 (rank 1, host {host}) has ended after 0 steps"),
    (2, "after startup", {}, 0, "worker 2 (rank 2, host {host}) has ended after 0 steps"),
    (2, "after startup", {"FLEET_MPI_ALLREDUCE": "fast"}, 0, "worker 2 (rank 2, host {host}) has ended after 0 steps"),
    (0, "step 3", {"FLEET_MPI_ALLREDUCE": "fast"}, 1,
     "the gradients of step 3: worker 0 (rank 0, host {host}) has ended"),
    (2, "step 3", {"FAULTS_ROWS": "1"}, 0,
     "the gathered values: worker 2 (rank 2, host {host}) has ended after 3 steps")))
def test_a_worker_that_ends_in_mid_training_is_named_by_the_first_that_waits(rank, moment, variables, who, what):
    ended = faulty(rank, moment, "sys.exit(0)", ENDLESS, **variables)
    assert ended.with_code(4), ended.job.story()
    assert ended.says(f"fleet_mpi: rank {who} (worker {who}, host {HOST}", "PeerLost", what.format(host=HOST),
                      "all workers must"), ended.job.story()


def test_fewer_steps_on_one_worker_are_an_error_that_names_it():
    ended = faulty(1, "fewer steps", "nothing")
    assert ended.with_code(4), ended.job.story()
    assert ended.says("PeerLost", "the gradients of step 8", "worker 1 (rank 1", "has ended after 8 steps",
                      "this worker has done 8"), ended.job.story()
    assert IN_ORDER in ended.job.ranks[1].out


def test_workers_that_wait_for_each_other_at_different_places_end_at_once():
    ended = faulty(1, "step 5", "barrier", ENDLESS)
    assert ended.with_code(2), ended.job.story()
    assert ended.says("rank 0 (worker 0", "UsageError: the gradients of step 5", "worker 1 (rank 1", "has done 5 steps",
                      "waits for something else (barrier)"), ended.job.story()


def test_a_step_that_was_left_by_an_error_is_not_gone_on_from():
    ended = faulty(1, "step 3", "go on", ENDLESS)
    assert ended.with_code(2), ended.job.story()
    assert ended.says("rank 1 (worker 1",
                      "step 3 was left by an error while gradients were on their way"), ended.job.story()


def test_a_call_of_all_that_only_one_worker_makes_names_those_who_have_ended():
    ended = faulty(2, "only worker", "nothing")
    assert ended.with_code(4), ended.job.story()
    assert ended.says("rank 2 (worker 2", "PeerLost: all_gather: worker 0 (rank 0"), ended.job.story()


# ---------------------------------------------------------------------- stalls and kills

@pytest.mark.parametrize("rank, moment, fault, variables, who, whom", (
    (2, "after minimize", "sleep", {}, "rank 0 (worker 0, host {host}): Stalled: all_gather", "worker 2 (rank 2"),
    (0, "step 3", "sleep", {}, "rank 1 (worker 1, host {host}, step 3): Stalled",
     "for worker 0 (rank 0, host {host}) ("),
    (1, "step 3", "stop", {"FLEET_MPI_ALLREDUCE": "fast"}, "rank 0 (worker 0, host {host}, step 3): Stalled",
     "for worker 1 (rank 1, host {host}) (")))
def test_who_stalls_is_named_after_the_deadline(rank, moment, fault, variables, who, whom):
    ended = faulty(rank, moment, fault, ENDLESS, FAULTS_DEADLINE_MS="3000", **variables)
    assert ended.with_code(5, SOON + 10), ended.job.story()
    assert ended.says(who.format(host=HOST), whom.format(host=HOST), "FLAGS_rpc_deadline"), ended.job.story()


def test_a_killed_worker_is_named_by_the_launcher():
    ended = faulty(2, "step 3", "kill", ENDLESS, via="launch")
    assert ended.with_code(4), ended.job.story()
    assert ended.says(f"rank 2 (worker 2) on {HOST} was killed by signal 9"), ended.job.story()


# ---------------------------------------------------------------------- different jobs

@pytest.mark.parametrize("difference, named", (
    ("another layer", "fc_0.b_0@GRAD (gradients) is float32 [7] with worker 2 and float32 [6] with worker 0"),
    ("another size", "fuse_mb (option) is 16 with worker 2 and 32 with worker 0"),
    ("another variant", "FLEET_MPI_ALLREDUCE is fast with worker 2 and not set with worker 0")))
def test_a_worker_with_another_program_is_refused_with_the_difference(difference, named):
    ended = faulty(2, difference, "nothing", ENDLESS)
    assert ended.with_code(2), ended.job.story()
    assert ended.says("worker 2 and worker 0 do not run the same job", named), ended.job.story()
