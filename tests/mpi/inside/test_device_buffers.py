"""Arrays on a device over real MPI: the stand-in's arrays show MPI the address of host memory, as a GPU's their own.

So the way of a CUDA-aware library is gone without a GPU: mpi4py takes ``__cuda_array_interface__``.
"""

import numpy as np
import pytest

from fleet_mpi.collective.cuda_awareness import awareness
from fleet_mpi.collective.staging import Staged, StagedAllReduce
from fleet_mpi.testing import device


@pytest.fixture(scope="module")
def comm():
    """A communicator of our own."""
    from mpi4py import MPI
    return MPI.COMM_WORLD.Dup()


class Whole:
    """The library's all-reduce of one array, as the interface of collective/ has it."""

    def __init__(self, comm):
        self.comm, self.seen = comm, []

    def start(self, array):
        from mpi4py import MPI
        self.seen.append(array)
        return Waiting(self.comm.Iallreduce(MPI.IN_PLACE, array))


class Waiting:
    def __init__(self, request):
        self.request, self.has_come = request, False

    def advance(self):
        before, self.has_come = self.has_come, self.request.Test()
        return before != self.has_come

    def is_over(self):
        return self.has_come

    def waits_for(self):
        return []


def part(rank, size):
    """A rank's values, computed on the device."""
    return device.asarray(np.arange(size, dtype=np.float32)) + float(rank)


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("is_aware", (True, False))
def test_a_ring_of_sends(comm, is_aware):
    outgoing, coming = Staged(part(comm.rank, 5), is_aware), Staged(part(99, 5), is_aware)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    coming.outgoing()  # what it held may be overwritten now
    receiving = comm.Irecv(coming.on_wire, left)
    comm.Send(outgoing.outgoing(), right)
    receiving.Wait()
    assert device.asnumpy(coming.incoming()).tolist() == [left + i for i in range(5)]


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("is_aware", (True, False))
def test_sums_over_all_ranks(comm, is_aware):
    library = Whole(comm)
    staging = StagedAllReduce(library, is_aware)
    arrays = [part(comm.rank, size) for size in (3, 100_000, 3)]
    reductions = [staging.start(one) for one in arrays]
    while not all([one.is_over() for one in reductions]):
        for one in reductions:
            one.advance()
    ranks = sum(range(comm.size))
    for one in arrays:
        expected = np.arange(one.size, dtype=np.float32) * comm.size + ranks
        np.testing.assert_array_equal(device.asnumpy(one), expected)
    assert [isinstance(one, np.ndarray) for one in library.seen] == [not is_aware] * 3


@pytest.mark.mpi(min_size=2)
def test_the_loaded_library_is_asked_and_lives(comm):
    found = awareness()
    assert found.reason.split()[0] in ("MPIX_Query_cuda_support", "MPIX_GPU_query_support")
    assert len(set(comm.allgather(found))) == 1
