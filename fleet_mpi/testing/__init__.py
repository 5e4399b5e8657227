"""For tests: a strict stand-in for device arrays, and a record of which kernel versions were picked.

Importing this registers the stand-in with ``fleet_mpi.arrays``.
"""

from fleet_mpi.kernels import recorded_choices as kernel_choices
from fleet_mpi.testing.stand_in import DeviceArray, HostAccess, device

__all__ = ["DeviceArray", "HostAccess", "device", "kernel_choices"]
