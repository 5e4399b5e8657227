"""Nobody waits for minutes in a test."""

import pytest

from fleet_mpi.ranks import waiting


@pytest.fixture(autouse=True)
def deadline(monkeypatch):
    """Seconds until somebody counts as stalled; a test may set another."""
    monkeypatch.setattr(waiting, "deadline_s", lambda: 10.0)
