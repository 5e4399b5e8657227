"""What a job finds around it: cores, GPUs and the nodes of the Slurm job this process runs in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fleet_mpi.launch.job import Allocation
from fleet_mpi.launch.nodelist import nodes as nodes_of
from fleet_mpi.launch.running import cores
from fleet_mpi.ranks import devices

if TYPE_CHECKING:
    from collections.abc import Mapping


def around(environ: Mapping[str, str], folder: str = devices.FOLDER) -> Allocation:
    """The Allocation that the variables and this machine's device files describe."""
    nodes = nodes_of(environ.get("SLURM_JOB_NODELIST", "")) if environ.get("SLURM_JOB_ID") else ()
    name = os.uname().nodename
    tasks = environ.get("SLURM_NTASKS", "") if nodes else ""
    return Allocation(cores(), devices.visible(environ, folder), nodes, int(tasks) if tasks.isdecimal() else 0,
                      (name, name.partition(".")[0]))
