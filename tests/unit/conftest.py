"""Time for tests of waits: it passes only where somebody waits."""

import os
import time

import pytest


class Clock:
    """Time passes only by yielding (10 us) and sleeping."""

    def __init__(self):
        self.now, self.yields, self.sleeps = 100.0, 0, []

    def sched_yield(self):
        self.now += 1e-5
        self.yields += 1

    def sleep(self, seconds):
        self.now += seconds
        self.sleeps.append(seconds)

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The clock that waiting looks at."""
    made = Clock()
    monkeypatch.setattr(os, "sched_yield", made.sched_yield)
    monkeypatch.setattr(time, "sleep", made.sleep)
    monkeypatch.setattr(time, "monotonic", made.monotonic)
    return made
