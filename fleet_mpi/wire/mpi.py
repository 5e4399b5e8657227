"""Messages over an MPI communicator of our own: nonblocking sends and receives of bytes."""

from mpi4py import MPI

from fleet_mpi.wire.transport import Pending, Transport


class _Sending(Pending):
    """An MPI request that sends, and the array it reads."""

    __slots__ = ("request", "array")

    def __init__(self, request, array):
        self.request, self.array = request, array

    def done(self):
        """MPI_Test, which says yes of a request that is over."""
        return self.request.Test()


class _Receiving(Pending):
    """An MPI request that receives, and the array it writes."""

    __slots__ = ("request", "array", "status", "is_over")

    def __init__(self, request, array):
        self.request, self.array, self.status, self.is_over = request, array, MPI.Status(), False

    def done(self):
        """MPI_Test, until it says yes: the status is that of this one."""
        if not self.is_over:
            self.is_over = self.request.Test(self.status)
        return self.is_over

    @property
    def received(self):
        """The bytes that came."""
        return self.status.Get_count(MPI.BYTE)


class MPITransport(Transport):
    """The transport over a communicator, which must be used by nothing else."""

    def __init__(self, comm):
        self.comm = comm
        self.rank = comm.Get_rank()

    def post_send(self, peer, channel, array):
        """MPI_Isend."""
        return _Sending(self.comm.Isend(array, peer, channel), array)

    def post_receive(self, peer, channel, array):
        """MPI_Irecv."""
        return _Receiving(self.comm.Irecv(array, peer, channel), array)

    def withdraw(self, pending):
        """MPI_Cancel."""
        if not pending.done():
            pending.request.Cancel()
            pending.request.Free()
            pending.is_over = True
