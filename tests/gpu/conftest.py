"""The tests of this folder run where there is a GPU, or the emulation of one."""

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """Skip all, with one sentence, where there is no device."""
    mine = [item for item in items if HERE in item.path.parents]
    if not mine:
        return
    from fleet_mpi.program.engine.places import why_no_gpu
    problem = why_no_gpu()
    for item in mine if problem else ():
        item.add_marker(pytest.mark.skip(reason=f"{problem}; tests/gpu_emulation can take the place of a GPU"))


@pytest.fixture
def emulation():
    """For tests that look into the emulation: skipped on a real GPU. Gives its folder."""
    if "FLEET_EMULATION" not in os.environ:
        pytest.skip("looks into the emulation, and this is a GPU")
    return Path(os.environ["FLEET_EMULATION"])
