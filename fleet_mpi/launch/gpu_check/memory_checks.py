"""Device memory and pinned memory: allocated, filled, copied by a stream of its own, and given back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.collective.staging import Staged
from fleet_mpi.launch.gpu_check.findings import FAIL, OK, Finding
from fleet_mpi.parameter_server.flat import FlatLayout
from fleet_mpi.placement.shard import Variable
from fleet_mpi.program.engine.places import CUDAPlace
from fleet_mpi.runtime.device_copies import DeviceFlat, Downloads

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

SIZES_MB = {"quick": 8, "full": 512}


def check(device: int | None, quick: bool) -> list[Finding]:
    """All checks of memory."""
    return checks(CUDAPlace(device).array_module(), SIZES_MB["quick" if quick else "full"])


def checks(xp: ModuleType, megabytes: int) -> list[Finding]:
    """Each with so many megabytes."""
    words = megabytes << 18
    return [_told(name, what, run, xp, words) for name, what, run in (
        ("allocation", "written and read by kernels", allocation),
        ("staging", "through pinned memory and back while the device computes, as gradients go to MPI", staging),
        ("flat copies", "to the host and back in pieces, as gradients and parameters go to servers", flat_copies))]


def _told(name: str, what: str, run: Callable[[ModuleType, int], bool], xp: ModuleType, words: int) -> Finding:
    try:
        is_right = run(xp, words)
    except Exception as error:  # out of memory, or a fault of the device
        return Finding(name, FAIL, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    what = f"{words >> 18} MiB {what}"
    return Finding(name, OK, what) if is_right else Finding(name, FAIL, f"{what}: other values than were written")


def allocation(xp: ModuleType, words: int) -> bool:
    """Memory of the pool has what kernels wrote."""
    array = xp.arange(words, dtype="int32")
    return int(xp.asnumpy((array == xp.arange(words, dtype="int32")).all())) == 1


def staging(xp: ModuleType, words: int) -> bool:
    """What was computed arrives in pinned memory, and what is there comes back."""
    array = xp.arange(words, dtype="int32")
    array += 1
    staged = Staged(array, is_aware=False)
    on_wire = staged.outgoing()
    on_wire *= 2
    array[...] = 0
    return bool((xp.asnumpy(staged.incoming()) == 2 * np.arange(1, words + 1, dtype="int32")).all())


def flat_copies(xp: ModuleType, words: int) -> bool:
    """The flat array of a worker arrives piece by piece, and comes back as one."""
    layout = FlatLayout([Variable(f"part {number}", (words // 4,), "float32") for number in range(4)])
    flat = DeviceFlat(layout, Downloads(xp))
    for number, (name, view) in enumerate(flat.views.items()):
        view[...] = number + 0.5
        flat.ready(name)
    flat.gather()
    views = layout.views(flat.host)
    arrived = all((view == number + 0.5).all() for number, view in enumerate(views.values()))
    for view in views.values():
        view += 1
    flat.spread()
    return arrived and all(bool(xp.asnumpy((view == number + 1.5).all()))
                           for number, view in enumerate(flat.views.values()))
