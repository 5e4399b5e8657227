"""A Slurm for the tests of this folder, started once; they come last, with the others that start jobs."""

import shutil
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for slurm_cluster, which no other folder needs


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """The rest of the suite first: it compiles kernels, and numba's cache is not made for ranks that do so at once."""
    items.sort(key=lambda item: HERE in item.path.parents)


@pytest.fixture(scope="session")
def slurm():
    """A running cluster (see slurm_cluster.py); skips where none can be started."""
    import slurm_cluster
    from jobs import mpirun

    reason = slurm_cluster.why_not()
    if reason:
        pytest.skip(reason)
    mpirun()
    # Not in pytest's folder: the path of a socket may have a hundred characters only.
    folder = tempfile.mkdtemp(prefix="slurm-")
    try:
        with slurm_cluster.Cluster(folder) as cluster:
            yield cluster
    finally:
        shutil.rmtree(folder, ignore_errors=True)
