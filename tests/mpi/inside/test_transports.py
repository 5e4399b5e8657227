"""The checks of tests/unit/wire/test_transports.py over MPI: every pair of neighbours at once."""

import pytest

from tests.unit.wire import transport_checks


@pytest.fixture(scope="module")
def transport():
    """A transport with a communicator of its own."""
    from mpi4py import MPI

    from fleet_mpi.wire.mpi import MPITransport
    return MPITransport(MPI.COMM_WORLD.Dup())


@pytest.mark.mpi(min_size=2)
@pytest.mark.parametrize("check", transport_checks.CHECKS, ids=lambda check: check.__name__)
def test_mpi(transport, check):
    """A rank without a neighbour (odd worlds) has nothing to do."""
    other = transport.rank ^ 1
    if other < transport.comm.size:
        check(transport, transport.rank & 1, other)
