"""Two hosts for the tests of this folder."""

import pytest

from tests.hosts import host_network
from tests.mpi.jobs import mpirun


@pytest.fixture(scope="module")
def hosts():
    """Two hosts with a network between them (see host_network.py); skips where there can be none."""
    reason = host_network.why_not()
    if reason:
        pytest.skip(reason)
    mpirun()
    with host_network.Hosts() as made:
        yield made
