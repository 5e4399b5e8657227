"""How many calls of ours one poll of an idle wait runs, counted with sys.setprofile, on every side that waits."""

import os
import sys
import time

import numpy as np
import pytest

import fleet_mpi
from fleet_mpi.collective.exact import ExactAllReduce
from fleet_mpi.collective.group import Group
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.placement import Variable
from fleet_mpi.wire.loopback import Network
from tests.unit.parameter_server.loopback_job import Job

POLLS = 10
PACKAGE = os.path.dirname(fleet_mpi.__file__) + os.sep   # not by name: a clone is called fleet_mpi as well


class Counted(Exception):
    """The polls are counted: end the wait."""


class Profile:
    """Counts the calls between the third yield of a wait and the one POLLS later, and ends the wait then."""

    def __init__(self, is_over):
        self.yields, self.calls, self.files, self.is_over = 0, 0, set(), is_over

    def sched_yield(self):
        """As os.sched_yield, which a poll calls once."""
        self.yields += 1
        if self.yields == 3:
            sys.setprofile(self._note)
        elif self.yields == 3 + POLLS:
            sys.setprofile(None)
            self.is_over()

    def _note(self, frame, event, argument):
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(PACKAGE):
            self.calls += 1
            self.files.add(name)


@pytest.fixture
def profiled(monkeypatch):
    """(calls of a poll, files of ours that it runs through), while ``wait`` waits and until ``is_over`` ends it."""
    def measure(wait, is_over):
        profile, now = Profile(is_over), time.monotonic()
        monkeypatch.setattr(os, "sched_yield", profile.sched_yield)
        monkeypatch.setattr(time, "monotonic", lambda: now)   # a wait that stays short
        try:
            wait()
        except Counted:
            pass
        finally:
            sys.setprofile(None)
        assert profile.yields >= 3 + POLLS and profile.calls % POLLS == 0
        return profile.calls // POLLS, len(profile.files)
    return measure


def end():
    """End the wait by an exception."""
    raise Counted


@pytest.mark.parametrize("length, calls", ((1 << 20, 9), (100, 5)))
def test_a_worker_that_waits_for_a_sum(profiled, length, calls):
    group = Group(0, [Network().transport(0)], 2)
    reduction = ExactAllReduce(group.lanes[0], group.ranks).start(np.ones(length, "float32"))
    reduction.advance()
    found, files = profiled(lambda: group.finish([reduction], "the sum"), end)
    assert found <= calls and files <= 4


def test_a_server_that_waits_for_two_workers(profiled):
    job = Job(1, 2, [Variable("x", (4, 5))], recipe("sgd", "lr"))
    found, files = profiled(job.servers[0].serve, end)
    assert found <= 6 and files <= 3


def test_a_worker_that_waits_for_a_server(profiled):
    job = Job(1, 1, [Variable("x", (4, 5))], recipe("sgd", "lr"))
    client = job.clients[0]
    client.transport.on_wait = None
    found, files = profiled(lambda: client.collect(client.push_pull()),
                            lambda: setattr(client.transport, "on_wait", job.pump))
    assert found <= 2 and files <= 1
