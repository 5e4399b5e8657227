"""A data folder of the test's own."""

import pytest

from fleet_mpi import settings


@pytest.fixture
def data_home(tmp_path):
    """An empty DATA_HOME; no seed is set."""
    with settings.override(DATA_HOME=str(tmp_path), FLEET_MPI_SEED=0):
        yield tmp_path
