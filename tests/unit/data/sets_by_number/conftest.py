"""The stand-ins are small here."""

import pytest

from fleet_mpi import settings


@pytest.fixture
def few(data_home):
    """An empty DATA_HOME, and at most 40 pictures of a made-up part."""
    with settings.override(FLEET_MPI_SYNTHETIC_SAMPLES=40):
        yield data_home
