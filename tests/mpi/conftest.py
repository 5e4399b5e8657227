"""The tests of this folder start MPI jobs, and are no tests that run in ranks themselves."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """In a rank (``--with-mpi``), tests run in step with those of the other ranks."""
    if config.getoption("--with-mpi", default=False):
        from tests.mpi import in_step
        config.pluginmanager.register(in_step)


def pytest_ignore_collect(collection_path, config):
    """Outside a rank there is nothing to collect in ``inside``."""
    return True if collection_path == HERE / "inside" and not config.getoption("--with-mpi", default=False) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """pytest-mpi takes the name of this folder for its mark; the skip that it put on unmarked tests is taken off."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("mpi") is None:
            item.own_markers[:] = [mark for mark in item.own_markers
                                   if mark.kwargs.get("reason") != "need --with-mpi option to run"]
