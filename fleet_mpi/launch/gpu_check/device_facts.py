"""Which device this is, and which driver and libraries cupy has found: the first question about any report."""

from __future__ import annotations

import importlib
import os
import platform
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.errors import FleetError
from fleet_mpi.launch.gpu_check.findings import FAIL, OK, Finding
from fleet_mpi.program.engine.places import CUDAPlace, why_no_gpu

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from fleet_mpi.program.engine.places import Place

CURE = "see docs/gpu.rst, \"Installing\"; python -m fleet_mpi doctor looks at the driver"
# What changes how cupy and NCCL work; values only of these.
SETTINGS = ("CUDA_VISIBLE_DEVICES", "CUDA_PATH", "CUPY_ACCELERATORS", "CUPY_TF32", "CUDA_LAUNCH_BLOCKING",
            "NCCL_P2P_DISABLE", "NCCL_IB_DISABLE", "NCCL_SOCKET_IFNAME", "FLAGS_selected_gpus")


def check(device: int | None, quick: bool) -> list[Finding]:
    """The facts of the device; one failure, with the reason, where none is usable."""
    problem = why_no_gpu()
    if problem is not None:
        return [Finding("usable", FAIL, f"no GPU can be used: {problem}", CURE)]
    try:
        place = CUDAPlace(device)
        xp = place.array_module()
    except FleetError as error:
        return [Finding("usable", FAIL, str(error))]
    return [_described(name, ask) for name, ask in _questions(xp, place)] + [_surroundings()]


def _questions(xp: ModuleType, place: Place) -> list[tuple[str, Callable[[], str]]]:
    runtime = xp.cuda.runtime

    def device() -> str:
        about = runtime.getDeviceProperties(place.device_id)
        name = about["name"].decode() if isinstance(about["name"], bytes) else about["name"]
        return (f"{place}: {name}, compute capability {about['major']}.{about['minor']}, "
                f"{about['totalGlobalMem'] >> 20} MiB, one of {runtime.getDeviceCount()}")
    return [("device", device), ("driver", lambda: _version(runtime.driverGetVersion())),
            ("CUDA runtime", lambda: _version(runtime.runtimeGetVersion())), ("cupy", lambda: xp.__version__),
            ("NVRTC", lambda: ".".join(map(str, xp.cuda.nvrtc.getVersion()))),
            ("cuBLAS", lambda: str(xp.cuda.cublas.getVersion(xp.cuda.device.get_cublas_handle()))),
            # Since its version 14 cupy has the module only once it is imported.
            ("NCCL", lambda: str(importlib.import_module(f"{xp.__name__}.cuda.nccl").get_version()))]


def _described(name: str, ask: Callable[[], str]) -> Finding:
    """An answer; a library that is not there is said, and what needs it fails by itself."""
    try:
        return Finding(name, OK, ask())
    except Exception as error:  # each library raises its own kinds
        return Finding(name, OK, f"none ({type(error).__name__}: {' '.join(str(error).split())[:200]})")


def _version(number: int) -> str:
    return f"{number} ({number // 1000}.{number % 1000 // 10})" if number < 20000 else str(number)


def _surroundings() -> Finding:
    told: dict[str, Any] = {name: os.environ[name] for name in SETTINGS if name in os.environ}
    text = f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}"
    return Finding("host", OK, text + "".join(f", {name}={value}" for name, value in told.items()),
                   numbers={"settings": told})
