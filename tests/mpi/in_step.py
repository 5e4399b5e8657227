"""A plugin of the pytest in every rank: ranks stay in step, test by test; what fails on one of them fails on all.

A rank whose test failed may have left the others in the middle of an exchange. It tells them after the test; where they
do not come to listen within seconds, it ends the job.
"""

import os
import sys
import time

import pytest

# Seconds; others may still be at work on the test that failed here.
WAIT_AFTER_FAILURE = float(os.environ.get("TEST_PATIENCE", 10))
WAIT = 90  # more than a test may take before its rank is ended with its stack


_own = []  # this file's duplicate of the world; made before any test can leave a rank behind


def pytest_configure(config):
    """A temporary folder per rank: ranks that number and clean the common one would meet there."""
    _own.append(_world().Dup())
    if "TEST_JOB" in os.environ and not config.option.basetemp:
        config.option.basetemp = os.path.join(os.environ["TEST_JOB"], f"tmp.{_world().rank}")


def pytest_runtest_setup(item):
    """``max_size``, which pytest-mpi does not know."""
    for mark in item.iter_markers(name="mpi"):
        limit = mark.kwargs.get("max_size")
        if limit is not None and _world().size > limit:
            pytest.skip(f"for at most {limit} ranks")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Outside of the timer that faulthandler keeps for the test itself."""
    item.session.failed_here = False
    result = yield
    others = _agree(item.session.failed_here, item.nodeid)
    if others and not item.session.failed_here:
        item.session.testsfailed += 1
        print(f"\n{item.nodeid} failed on rank {', '.join(map(str, others))}", file=sys.stderr)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Failures are shown at once: a job that is ended has no summary."""
    report = yield
    if report.failed:
        item.session.failed_here = True
        print(f"\n{item.nodeid} failed in {report.when}:\n{report.longreprtext}", file=sys.stderr, flush=True)
    return report


def _world():
    from mpi4py import MPI
    return MPI.COMM_WORLD


def _agree(failed, test):
    """The ranks on which the test failed; ends the job if they do not all come to say."""
    import numpy as np
    verdicts = np.zeros(_own[0].size, np.int32)
    request = _own[0].Iallgather(np.array([failed], np.int32), verdicts)
    deadline = time.monotonic() + (WAIT_AFTER_FAILURE if failed else WAIT)
    while not request.Test():
        if time.monotonic() > deadline:
            sys.stderr.write(f"\nrank {_own[0].rank} waited for the others after {test}; it ends the job\n")
            sys.stderr.flush()
            _own[0].Abort(1)
        time.sleep(0.0005)
    return [int(rank) for rank in np.flatnonzero(verdicts)]
