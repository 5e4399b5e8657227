"""What sums gradients that lie on a device: over MPI straight from there, over MPI through the host, or by NCCL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import notices
from fleet_mpi.collective.cuda_awareness import awareness
from fleet_mpi.collective.nccl_backend import NcclAllReduce
from fleet_mpi.collective.staging import StagedAllReduce

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from fleet_mpi.collective.group import Group
    from fleet_mpi.collective.reducer import Reducer


def reducers_for(xp: ModuleType, chosen: str, made: Sequence[Reducer], group: Group) -> Sequence[Reducer]:
    """Reducers for arrays of ``xp``: ``made``, those for host arrays, as they are or behind staging; NCCL's if chosen.

    ``chosen`` is exact, fast or nccl. With nccl: Collective. The exact sums are added up on the host: it has the parts
    of all ranks in the order in which they are needed. Says at start which way gradients go.
    """
    if chosen == "nccl":
        return NcclAllReduce.of(group, xp)
    if xp is np:
        return made
    is_aware, reason = awareness() if chosen == "fast" else (False, "exact sums are added up on the host")
    if group.index == 0:
        way = "straight from its memory" if is_aware else "through pinned host memory"
        notices.log().info("gradients on the device go to MPI %s (%s)", way, reason)
    return [StagedAllReduce(one, is_aware) for one in made]
