"""The default policy is what every job does; others are made from it and never changed."""

import signal
from dataclasses import FrozenInstanceError, replace

import pytest

from fleet_mpi.errors import NotBuilt
from fleet_mpi.ranks.policy import DEFAULT, Outcome, Policy


def test_by_default_a_loss_and_a_stall_end_the_job_a_leave_does_not_and_a_signal_saves():
    assert Policy() == DEFAULT
    assert DEFAULT.loss.ends_job and DEFAULT.stall.ends_job and not DEFAULT.leave.ends_job
    assert DEFAULT.signal is Outcome.SAVE_AND_END and not DEFAULT.signal.ends_job
    assert DEFAULT.signals == (signal.SIGUSR1, signal.SIGTERM) and DEFAULT.exit_code == 75


def test_a_policy_is_never_changed():
    with pytest.raises(FrozenInstanceError):
        DEFAULT.leave = Outcome.END_JOB
    assert replace(DEFAULT, leave=Outcome.END_JOB).leave.ends_job and not DEFAULT.leave.ends_job


@pytest.mark.parametrize("what, outcome", (("loss", "GO_ON"), ("stall", "GO_ON"), ("stall", "SAVE_AND_END"),
                                           ("leave", "SAVE_AND_END"), ("signal", "GO_ON")))
def test_an_outcome_that_is_not_built_is_refused(what, outcome):
    with pytest.raises(NotBuilt, match=f"policy: {what}={outcome} is not built; expected "):
        Policy(**{what: Outcome[outcome]})
