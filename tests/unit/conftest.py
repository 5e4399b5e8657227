"""Time for tests of waits: it passes only where somebody waits."""

import os
import threading
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
    """The clock that waiting looks at, in this thread: a server that another test has left waiting must not move it."""
    made, owner = Clock(), threading.get_ident()

    def put(module, name):
        real, own = getattr(module, name), getattr(made, name)
        monkeypatch.setattr(module, name, lambda *args: (own if threading.get_ident() == owner else real)(*args))
    put(os, "sched_yield")
    put(time, "sleep")
    put(time, "monotonic")
    return made
