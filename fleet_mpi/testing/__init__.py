"""For tests: a strict stand-in for device arrays, and a record of which kernel versions were picked.

    stand_in    DeviceArray and ``device``: numpy's arrays that never come to the host by themselves
    indexing    how cupy indexes and scatters where numpy does otherwise
    streams     the stand-in's streams: work counts as unfinished until it is waited for

Importing this registers the stand-in with ``fleet_mpi.arrays``.
"""

from fleet_mpi.kernels import recorded_choices as kernel_choices
from fleet_mpi.testing.stand_in import DeviceArray, HostAccess, device

__all__ = ["DeviceArray", "HostAccess", "device", "kernel_choices"]
