"""Who started this process, by the variables that launchers leave; a plain function of the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleet_mpi import settings
from fleet_mpi.launch.mpirun import MPICH, OPEN_MPI

if TYPE_CHECKING:
    from collections.abc import Mapping

# By what a launcher's ranks know their number; that of MPI's own launcher before Slurm's, which a batch script has too.
NUMBERED_BY = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PALS_RANKID", "SLURM_PROCID")


class Launcher(NamedTuple):
    """What started this process: its name, the family whose ranks it starts (empty: more than one), how many it says
    it started and by which variable (0: it does not say), this one's number among them, and how many are on this
    machine.

    ``name`` is empty for a process that was started alone.
    """

    name: str
    family: str
    count: int   # type: ignore[assignment]  # a method of tuples
    variable: str
    number: int
    here: int = 1

    @property
    def is_deaf(self) -> bool:
        """Whether ranks cannot find each other through it: srun without a --mpi."""
        return self.name == "srun --mpi=none"


ALONE = Launcher("", "", 0, "", 0)


def launcher(environ: Mapping[str, str]) -> Launcher:
    """The launcher that started a process with this environment."""
    number = next((_number(environ, name, 0) for name in NUMBERED_BY if environ.get(name)), 0)
    here = max(_number(environ, name, 1) for name in ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"))
    if _number(environ, "OMPI_COMM_WORLD_SIZE", 0):
        return Launcher("Open MPI's mpirun", OPEN_MPI, *_count(environ, "OMPI_COMM_WORLD_SIZE"), number, here)
    if environ.get("MPI_LOCALRANKID"):
        return Launcher("MPICH's mpirun", MPICH, *_count(environ, "PMI_SIZE"), number, here)
    if _number(environ, "SLURM_STEP_NUM_TASKS", 0) > 1 or environ.get("SLURM_PROCID") and _speaks(environ):
        return Launcher(f"srun --mpi={_speaks(environ) or 'none'}", "",
                        *_count(environ, "SLURM_STEP_NUM_TASKS"), number, _tasks_here(environ))
    if environ.get("PALS_RANKID"):
        return Launcher("PALS", "", *_count(environ, "PMI_SIZE"), number)
    if _speaks(environ):
        return Launcher(f"a launcher that speaks {_speaks(environ)}", "", *_count(environ, "PMI_SIZE"), number)
    return ALONE


def _speaks(environ: Mapping[str, str]) -> str:
    """By which protocol ranks may ask the launcher for each other."""
    return "pmix" if environ.get("PMIX_RANK") else "pmi2" if environ.get("PMI_RANK") else ""


def _tasks_here(environ: Mapping[str, str]) -> int:
    """How many tasks this machine has, of the step that srun started."""
    each = settings.counts_by_node(environ.get("SLURM_STEP_TASKS_PER_NODE", ""))
    node = _number(environ, "SLURM_NODEID", 0)
    return each[node] if 0 <= node < len(each) else 1


def _count(environ: Mapping[str, str], variable: str) -> tuple[int, str]:
    count = _number(environ, variable, 0)
    return (count, variable) if count > 0 else (0, "")


def _number(environ: Mapping[str, str], name: str, otherwise: int) -> int:
    try:
        return int(environ.get(name, otherwise))
    except ValueError:
        return otherwise
