"""A Slurm for the tests of this folder, started once."""

import shutil
import tempfile

import pytest

from tests.mpi.jobs import mpirun
from tests.slurm import slurm_cluster


@pytest.fixture(scope="session")
def slurm():
    """A running cluster (see slurm_cluster.py); skips where none can be started."""
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
