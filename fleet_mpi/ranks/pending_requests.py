"""Requests that MPI works on: one that is dropped before it is over, by an exception, is kept until it is.

A request of mpi4py has its array: whoever keeps the one keeps the other. Before MPI_Finalize what is left is taken back
or let come to its end; what does not within seconds, or is dropped later, is never freed. Knows requests by their
methods only.
"""

import ctypes
from typing import Any

from fleet_mpi.ranks import waiting

SETTLING_S = 2

_receives: list[Any] = []  # dropped, and not over when last looked at
_others: list[Any] = []
_is_late = False           # whether nobody will look again


class Sending:
    """A request, of one rank or of all together, that must come to its end."""

    __slots__ = ("request",)

    def __init__(self, request: Any) -> None:
        self.request = request

    def Test(self) -> bool:
        """Whether it is over; True again at every later call."""
        return self.request.Test()

    def __del__(self) -> None:
        if self.request:
            _keep(_others, self.request)


class Receiving(Sending):
    """A request that can be taken back."""

    __slots__ = ()

    def Cancel(self) -> None:
        """Take it back; a message that has begun to come comes all the same."""
        self.request.Cancel()

    def __del__(self) -> None:
        if self.request:
            _keep(_receives, self.request)


def _keep(kept: list[Any], request: Any) -> None:
    if _is_late:
        _keep_for_ever(request)
        return
    kept.append(request)
    kept[:] = [one for one in kept if not one.Test()]


def settle() -> None:
    """Before MPI_Finalize, which goes on with them after Python has freed their arrays."""
    global _is_late
    _is_late = True
    for request in _receives:
        request.Cancel()
    left = [*_receives, *_others]

    def is_over() -> bool:
        left[:] = [request for request in left if not request.Test()]
        return not left
    waiting.poll(is_over, limit_s=SETTLING_S)
    for request in left:
        _keep_for_ever(request)
    _receives.clear()
    _others.clear()


def _keep_for_ever(request: Any) -> None:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(request))
