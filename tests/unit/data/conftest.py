"""A data folder of the test's own, and log lines that do not depend on other tests."""

import logging

import pytest

from fleet_mpi import settings
from fleet_mpi.data import notices


@pytest.fixture(autouse=True)
def logger_as_before():
    """What ``notices.log`` sets up in a test is gone after it: others listen to the logger in their way."""
    logger = logging.getLogger("fleet_mpi")
    handlers, level, propagates = logger.handlers[:], logger.level, logger.propagate
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)
    logger.propagate = propagates


@pytest.fixture
def data_home(tmp_path, monkeypatch):
    """An empty DATA_HOME; no set has been announced yet, no seed is set."""
    monkeypatch.setattr(notices, "_said", set())
    with settings.override(DATA_HOME=str(tmp_path), FLEET_MPI_SEED=0):
        yield tmp_path
