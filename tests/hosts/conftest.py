"""Two hosts for the tests of this folder; they come last, with the others that start jobs."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for host_network, which no other folder needs


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """The rest of the suite first: it compiles kernels, and numba's cache is not made for ranks that do so at once."""
    items.sort(key=lambda item: HERE in item.path.parents)


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
