"""pytest plugin: real cupy where tests take the stand-in for device arrays.

    . FOLDER/env.sh
    python -m pytest -p tests.gpu_emulation.plugin tests/unit/program/ops -k device

Loaded by ``-p``, before any test module is imported, so that ``from fleet_mpi.testing import device`` gives cupy. Works
on a GPU as well as on the emulation. In ranks, each one uses its own device.
"""

import cupy
import pytest

from fleet_mpi import arrays, testing
from fleet_mpi.program.engine import places

# Tests that cannot hold on real cupy, by the end of their name, with the reason.
EXEMPT = {
    "test_linear_algebra.py::test_device[inverse-8]": "cuSOLVER is not emulated",
    "test_linear_algebra.py::test_device[inverse-a stack-9]": "cuBLAS's LU decompositions are not emulated",
    "test_linear_algebra.py::test_device[inverse-by rows exchanged-10]": "cuSOLVER is not emulated",
    **dict.fromkeys(("test_collective_on_devices.py::test_nccl_sums_where_it_is_there[]",
                     "test_collective_on_devices.py::test_nccl_sums_where_it_is_there[nccl]",
                     "test_collective_on_devices.py::test_nccl_is_refused_without_it"),
                    "it puts its own NCCL between the stand-in's streams; tests/gpu has the emulated one"),
    "test_staging.py::test_a_stand_in_shows_its_memory_only_once_its_stream_is_done":
        "cupy shows an address at any time",
}

testing.device, testing.DeviceArray = cupy, cupy.ndarray
arrays.register(cupy.ndarray, cupy)
cupy.cuda.Device(places.own_device()).use()


def pytest_collection_modifyitems(items):
    """Skip what is exempt, with its reason."""
    for item in items:
        for name, reason in EXEMPT.items():
            if item.nodeid.endswith(name):
                item.add_marker(pytest.mark.skip(reason=f"not on real cupy here: {reason}"))
