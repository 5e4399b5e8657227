"""A request that is dropped before it is over is kept until it is, and settled before MPI ends."""

import gc
import sys
import weakref

import pytest

from fleet_mpi.ranks import pending_requests
from fleet_mpi.ranks.pending_requests import Receiving, Sending


class Request:
    """One that is over when told so."""

    def __init__(self, is_over=False):
        self.is_over = self.is_cancelled = False
        self.is_over = is_over

    def __bool__(self):
        return not self.is_over

    def Test(self):
        """As MPI's."""
        return self.is_over

    def Cancel(self):
        """As MPI's, where nothing has begun to come."""
        self.is_over = self.is_cancelled = True


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    """Lists of this test's own, at the middle of a process's life, and no wait."""
    monkeypatch.setattr(pending_requests, "_receives", [])
    monkeypatch.setattr(pending_requests, "_others", [])
    monkeypatch.setattr(pending_requests, "_is_late", False)
    monkeypatch.setattr(pending_requests, "SETTLING_S", 0.01)


@pytest.mark.parametrize("kind", (Sending, Receiving))
def test_one_that_is_over_goes_with_its_array(kind):
    request = Request(is_over=True)
    seen = weakref.ref(request)
    one = kind(request)
    assert one.Test()
    del one, request
    assert seen() is None


@pytest.mark.parametrize("kind", (Sending, Receiving))
def test_one_that_is_dropped_is_kept_until_it_is_over(kind):
    request = Request()
    seen = weakref.ref(request)
    kind(request)
    del request
    gc.collect()
    assert seen() is not None
    seen().is_over = True
    kind(Request())   # the next one that is dropped
    assert seen() is None


def test_receives_are_taken_back_and_sends_come_to_their_end():
    sent, received = Request(), Request()
    Sending(sent)
    Receiving(received)
    before = sys.getrefcount(sent)
    pending_requests.settle()
    assert received.is_cancelled and not sent.is_cancelled
    assert sys.getrefcount(sent) == before, "one that is not over must never be freed"


def test_what_is_dropped_later_is_never_freed():
    pending_requests.settle()
    request = Request()
    before = sys.getrefcount(request)
    Receiving(request)
    assert sys.getrefcount(request) == before + 1
