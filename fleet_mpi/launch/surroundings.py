"""What a job finds around it: cores, GPUs and the nodes of the Slurm job this process runs in."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from fleet_mpi.launch import flags
from fleet_mpi.launch.job import Allocation
from fleet_mpi.launch.nodelist import nodes as nodes_of
from fleet_mpi.launch.running import cores

if TYPE_CHECKING:
    from collections.abc import Mapping

DEVICES = "/dev"


def around(environ: Mapping[str, str], devices: str = DEVICES) -> Allocation:
    """The Allocation that the variables and this machine's device files describe."""
    nodes = nodes_of(environ.get("SLURM_JOB_NODELIST", "")) if environ.get("SLURM_JOB_ID") else ()
    name = os.uname().nodename
    tasks = environ.get("SLURM_NTASKS", "") if nodes else ""
    return Allocation(cores(), gpus(environ, devices), nodes, int(tasks) if tasks.isdecimal() else 0,
                      (name, name.partition(".")[0]))


def gpus(environ: Mapping[str, str], devices: str = DEVICES) -> tuple[str, ...]:
    """The CUDA devices that this process may use, numbered as it sees them."""
    try:
        there = [name for name in os.listdir(devices) if re.fullmatch(r"nvidia\d+", name)]
    except OSError:
        there = []
    if "CUDA_VISIBLE_DEVICES" in environ:
        visible = [word for word in flags.words(environ["CUDA_VISIBLE_DEVICES"]) if word != "-1"]
        there = visible if there else []
    return tuple(str(number) for number in range(len(there)))
