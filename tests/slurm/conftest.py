"""A Slurm for the tests of this folder, started once."""

import shutil
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for slurm_cluster, which no other folder needs


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
