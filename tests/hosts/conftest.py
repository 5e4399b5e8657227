"""Two hosts for the tests of this folder."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for host_network, which no other folder needs


@pytest.fixture(scope="module")
def hosts():
    """Two hosts with a network between them (see host_network.py); skips where there can be none."""
    import host_network
    from jobs import mpirun

    reason = host_network.why_not()
    if reason:
        pytest.skip(reason)
    mpirun()
    with host_network.Hosts() as made:
        yield made
