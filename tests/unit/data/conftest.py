"""A data folder of the test's own, and a source that tells when it is left."""

import threading

import pytest

from fleet_mpi import settings


@pytest.fixture
def data_home(tmp_path):
    """An empty DATA_HOME; no seed is set."""
    with settings.override(DATA_HOME=str(tmp_path), FLEET_MPI_SEED=0):
        yield tmp_path


@pytest.fixture
def endless():
    """A source without an end; ``closed`` is set once an iteration over it is closed."""
    def source():
        try:
            while True:
                yield 0
        finally:
            source.closed.set()

    source.closed = threading.Event()
    return source
