"""The MPI library's sums: ranks that start and advance arrays in their own time still add up the same ones together."""

import numpy as np
import pytest


@pytest.fixture
def comm():
    """A communicator of our own."""
    from mpi4py import MPI
    made = MPI.COMM_WORLD.Dup()
    yield made
    made.Free()


@pytest.mark.mpi(min_size=2)
def test_arrays_do_not_overtake_each_other(comm):
    from fleet_mpi.collective.library import LibraryAllReduce
    reducer = LibraryAllReduce(comm)
    for turn in range(10):
        arrays = [np.full(length, comm.rank + 1.0) for length in (300_000, 5, 70)]
        under_way = []
        for array in arrays:
            under_way.append(reducer.start(array))
            for _ in range(comm.rank * turn):  # some begin to add up before they start the next one, some do not
                under_way[0].advance()
        if comm.rank % 2:
            under_way.reverse()
        while not all(one.is_over() for one in under_way):
            for one in under_way:
                one.advance()
        for array in arrays:
            assert (array == comm.size * (comm.size + 1) / 2).all()
