"""What all tests of sessions use."""

import pytest


@pytest.fixture(autouse=True)
def deadline(monkeypatch):
    """Nobody waits for minutes in a test."""
    monkeypatch.setenv("FLAGS_rpc_deadline", "20000")
