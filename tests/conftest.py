"""What every test starts from: empty programs and scope, nothing said yet, and the logger as it was."""

import logging
import os
from pathlib import Path

import hypothesis
import pytest
from building import from_scratch

from fleet_mpi import notices

# Programs without a seed of their own, here and in the processes that tests start, draw the same at every run of
# the suite: a failure can be repeated. Another value may be set in the environment.
os.environ.setdefault("FLEET_MPI_SEED", "20")
# No deadline: the machine is shared, and a kernel may be compiled in an example. The same examples at every run.
hypothesis.settings.register_profile("suite", deadline=None, derandomize=True)
hypothesis.settings.load_profile("suite")


STARTING_JOBS = {Path(__file__).parent / folder for folder in ("mpi", "hosts", "slurm")}


def pytest_collection_modifyitems(items):
    """Jobs come last: the other tests compile kernels, and numba's cache is not made for ranks that do so at once."""
    items.sort(key=lambda item: bool(STARTING_JOBS.intersection(item.path.parents)))


@pytest.fixture(autouse=True)
def programs():
    """The default programs (main, startup) of this test alone, empty, as are its names and its scope."""
    with from_scratch() as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_said_yet(monkeypatch):
    """Notices are said once per process; for tests, once per test."""
    monkeypatch.setattr(notices, "_said", set())
    logger = logging.getLogger("fleet_mpi")
    handlers, level, propagates = logger.handlers[:], logger.level, logger.propagate
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)
    logger.propagate = propagates
