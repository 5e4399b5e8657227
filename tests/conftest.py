"""What every test starts from: empty programs and scope, nothing said yet, and the logger as it was."""

import logging
import os
from pathlib import Path

import hypothesis
import pytest

from fleet_mpi import notices
from tests.unit.program.building import from_scratch

# Programs without a seed of their own, here and in the processes that tests start, draw the same at every run of
# the suite: a failure can be repeated. Another value may be set in the environment.
os.environ.setdefault("FLEET_MPI_SEED", "20")
# Tests start a thousand processes, which would compile the package's 400 files again each (0.5 s).
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# As a user's shell: nothing may hold only because output is not buffered.
os.environ.pop("PYTHONUNBUFFERED", None)
# No deadline: the machine is shared, and a kernel may be compiled in an example. The same examples at every run.
hypothesis.settings.register_profile("suite", deadline=None, derandomize=True)
hypothesis.settings.load_profile("suite")


HERE = Path(__file__).parent
STARTING_JOBS = [HERE / folder for folder in ("slurm", "hosts", "mpi", "gpu")]  # those that wait most begin first
# What may come out otherwise with another MPI: jobs, and what speaks with MPI or its launcher (test_imports.py looks).
OF_MPI = {*STARTING_JOBS} | {HERE / "unit" / name for name in (
    "collective", "launch", "ranks", "wire", "test_allreduce_benchmark.py", "test_documents.py")}


def pytest_addoption(parser):
    """CI runs all tests with one MPI, and with the other one those that depend on it."""
    parser.addoption("--depends-on-mpi", action="store_true",
                     help="only tests that may come out otherwise with another MPI")


def pytest_collection_modifyitems(config, items):
    """Jobs come last: the other tests compile kernels, and numba's cache is not made for ranks that do so at once."""
    if config.getoption("--depends-on-mpi"):
        config.hook.pytest_deselected(items=[item for item in items if not _lies_in(OF_MPI, item.path)])
        items[:] = [item for item in items if _lies_in(OF_MPI, item.path)]
    for item in items:
        if _lies_in(set(STARTING_JOBS), item.path):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: [folder in item.path.parents for folder in reversed(STARTING_JOBS)])


@pytest.fixture
def depends_on_mpi():
    """The rule: whether a test file's outcome may depend on the MPI."""
    return lambda path: _lies_in(OF_MPI, path)


def _lies_in(places, path):
    return not places.isdisjoint((path, *path.parents))


@pytest.fixture(autouse=True)
def programs():
    """The default programs (main, startup) of this test alone, empty, as are its names and its scope."""
    with from_scratch() as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_said_yet(monkeypatch):
    """Notices are said once per process; for tests, once per test."""
    monkeypatch.setattr(notices, "_said", set())
    logger = logging.getLogger("fleet_mpi")
    handlers, level, propagates = logger.handlers[:], logger.level, logger.propagate
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)
    logger.propagate = propagates
