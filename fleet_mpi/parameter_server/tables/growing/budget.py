"""How much memory a server may give to a table where nobody says it. Knows no tables."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from fleet_mpi.kernels import threads
from fleet_mpi.parameter_server.tables.growing import memory

if TYPE_CHECKING:
    from collections.abc import Iterator

# Linux: the groups of this process, and where their limits are, in the second version of control groups and the first.
_GROUPS, _ROOT = "/proc/self/cgroup", "/sys/fs/cgroup"
_LIMITS = {"": ("", "memory.max"), "memory": ("memory", "memory.limit_in_bytes")}


def server_bytes() -> int:
    """This rank's share of the machine's memory, or of what its control group may have of it."""
    return min([memory.physical_bytes(), *group_limits()]) // threads.ranks_here()


def group_limits(groups: str = _GROUPS, root: str = _ROOT) -> Iterator[int]:
    """Yield the limits of this process's memory group and of all around it, as far as there are any."""
    if not os.path.exists(groups):
        return
    for line in Path(groups).read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in set(controllers.split(",")) & _LIMITS.keys():
            folder, name = _LIMITS[controller]
            inner = PurePosixPath(path.lstrip("/"))
            for one in (inner, *inner.parents):
                try:
                    yield int((Path(root) / folder / one / name).read_text())
                except (OSError, ValueError):
                    pass   # no such level seen from here, or "max": no limit
