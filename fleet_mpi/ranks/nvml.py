"""How many NVIDIA GPUs this machine has, by the driver's management library: CUDA itself stays untouched.

Asked where /dev shows no devices, as in WSL. CUDA is not asked: a process that has used it cannot fork, and ranks that
serve need no device.
"""

from __future__ import annotations

import ctypes

LIBRARY = "libnvidia-ml.so.1"


def device_count() -> int:
    """How many the driver counts, whatever CUDA_VISIBLE_DEVICES says; 0 without a driver."""
    count = ctypes.c_uint(0)
    try:
        library = ctypes.CDLL(LIBRARY)
        if library.nvmlInit_v2():
            return 0
        library.nvmlDeviceGetCount_v2(ctypes.byref(count))  # which leaves the count alone where it fails
        library.nvmlShutdown()
    except (OSError, AttributeError):  # no library, or one without these functions
        return 0
    return count.value
