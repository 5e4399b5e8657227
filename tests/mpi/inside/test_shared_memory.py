"""Ranks of one machine sum in memory that they share, to the bits of messages."""

import platform

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.collective import shared_memory
from fleet_mpi.collective.exact import ExactAllReduce
from fleet_mpi.collective.group import Group

LENGTHS = (1, 1000, 300_000)


@pytest.fixture
def comm():
    """A communicator of our own."""
    from mpi4py import MPI
    made = MPI.COMM_WORLD.Dup()
    yield made
    made.Free()


def sums(comm, shared):
    """(what summed, this rank's arrays after it)."""
    group = Group.over_mpi(comm.rank, [comm.Dup()], str)
    made = [ExactAllReduce(lane, group.ranks) for lane in group.lanes]
    with settings.override(FLEET_MPI_SHARED_MEMORY=shared):
        (reducer,), memory = shared_memory.shared_reducers(made, group, 4 * sum(LENGTHS), np)
    flat = np.empty(sum(LENGTHS), np.float32) if memory is None else memory.view(np.float32)
    rng = np.random.default_rng(comm.rank)
    flat[...] = rng.standard_normal(len(flat)) * 10.0 ** rng.integers(-3, 4, len(flat))
    lines = np.split(flat, np.cumsum(LENGTHS)[:-1])
    for _ in range(20):  # whoever is late is another one each time
        group.finish([reducer.start(line) for line in lines], "sums")
        flat *= np.float32(0.5)
    return type(reducer), flat.copy()


@pytest.mark.mpi(min_size=2)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="memory is shared on x86 only")
def test_shared_sums_have_the_bits_of_messages(comm):
    (by, found), (_, expected) = sums(comm, True), sums(comm, False)
    assert by is shared_memory.SharedAllReduce
    assert found.tobytes() == expected.tobytes()
