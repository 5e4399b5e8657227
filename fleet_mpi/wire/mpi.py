"""Messages over an MPI communicator of our own: nonblocking sends and receives of bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from fleet_mpi.errors import PeerLost
from fleet_mpi.ranks.pending_requests import Receiving, Sending
from fleet_mpi.wire.inboxes import Inboxes
from fleet_mpi.wire.transport import Pending, Transport, too_long

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from fleet_mpi.arrays import Array

# MPICH stops at an array's end.
_OVERRUNS = MPI.get_vendor()[0] == "Open MPI"
_inboxes = Inboxes()


class _Sending(Sending, Pending):
    """An MPI request that sends; it has the array that it reads."""

    __slots__ = ()

    def done(self) -> bool:
        """MPI_Test, which says yes of a request that is over."""
        return self.request.Test()


class _Receiving(Receiving, Pending):
    """An MPI request that receives, and the array it writes; ``received`` is None until it is over."""

    __slots__ = ("transport", "array", "received")

    received: Any

    def __init__(self, request: MPI.Request, transport: MPITransport, array: Array) -> None:
        self.request, self.transport, self.array, self.received = request, transport, array, None

    def done(self) -> bool:
        """MPI_Test, until it says yes."""
        if self.received is None:
            status = self.transport.status
            try:
                if not self.request.Test(status):
                    return False
            except MPI.Exception as error:
                raise self._lost(error) from error
            self.received = status.Get_count(MPI.BYTE)
        return True

    def _lost(self, error: MPI.Exception) -> PeerLost:
        source = self.transport.name_of(self.transport.status.Get_source())
        if error.Get_error_class() == MPI.ERR_TRUNCATE:
            return too_long(source, len(self.array))
        return PeerLost(f"a message of {source} did not come: {error}")


class MPITransport(Transport):
    """The transport over a communicator, which must be used by nothing else; ``name_of(rank)`` is for sentences.

    For one thread at a time.
    """

    def __init__(self, comm: MPI.Intracomm, name_of: Callable[[int], str] = "rank {}".format) -> None:
        self.comm, self.name_of, self.rank = comm, name_of, comm.Get_rank()
        self.status = MPI.Status()  # of the last request that was looked at

    def post_send(self, peer: int, channel: int, array: Array) -> Pending:
        """MPI_Isend."""
        return _Sending(self.comm.Isend(array, peer, channel))

    def post_receive(self, peer: int, channel: int, array: Array) -> Pending:
        """MPI_Irecv."""
        return _Receiving(self.comm.Irecv(array, peer, channel), self, array)

    def inbox(self, nbytes: int) -> np.ndarray:
        """One behind which a message that is too long may be written."""
        return _inboxes.take(nbytes) if _OVERRUNS else super().inbox(nbytes)

    def withdraw(self, pending: Pending) -> None:
        """Cancel the receive; the array is kept until a message that has begun to arrive is complete."""
        receiving: Any = pending   # one of this transport's
        if not receiving.done():
            receiving.request.Cancel()
            receiving.received = 0
