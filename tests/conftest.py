"""What every test starts from: empty programs and scope, nothing said yet, and the logger as it was."""

import logging

import pytest
from building import from_scratch

from fleet_mpi import notices


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
