"""Which MPI library this interpreter loads, and whether the launcher that started it belongs to that library.

A wrong pair ends in a raw error of the library, or in N jobs of one rank each; it is known before MPI starts. Knows
what lies beside the interpreter and what launchers tell by variables; where either says nothing, nothing is refused.
"""

import os
import sys

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem

OPEN_MPI, MPICH = "Open MPI", "MPICH"
_BIN = os.path.dirname(sys.executable)
FILES = {"libmpi.so.40": OPEN_MPI, "libmpi.so.12": MPICH}


def beside(folder: str | os.PathLike[str] | None = None) -> str | None:
    """The family of the library in ``folder`` (beside this interpreter), which mpi4py takes first; None if there is
    none.

    MPI4PY_LIBMPI says another one.
    """
    chosen = os.environ.get("MPI4PY_LIBMPI")
    if chosen is not None:
        return next((family for name, family in FILES.items() if name in chosen), None)
    folder = folder or os.path.join(os.path.dirname(_BIN), "lib")
    return next((family for name, family in FILES.items() if os.path.exists(os.path.join(folder, name))), None)


def refuse_foreign_launcher(own: str | None = None) -> None:
    """Raise EnvironmentProblem where a launcher of one MPI started a process that would load another one."""
    own = own or beside()
    by_open_mpi = settings.get("OMPI_COMM_WORLD_SIZE") > 0 or settings.get("PMIX_RANK") >= 0
    by_mpich = settings.get("PMI_RANK") >= 0
    if own == MPICH and by_open_mpi and not by_mpich:
        raise _refusal("PMIX_RANK", OPEN_MPI, MPICH, "pmi2")
    if own == OPEN_MPI and by_mpich and settings.get("MPI_LOCALRANKID") >= 0 and not by_open_mpi:
        raise _refusal("PMI_RANK", MPICH, OPEN_MPI, "pmix")


def _refusal(variable: str, launcher: str, own: str, plugin: str) -> EnvironmentProblem:
    by_srun = settings.get("SLURM_STEP_NUM_TASKS") > 0 and settings.get("OMPI_COMM_WORLD_SIZE") == 0
    started, cure = (("srun", f"give srun --mpi={plugin}") if by_srun else
                     (f"the mpirun of {launcher}", f"use {os.path.join(_BIN, 'mpirun')}, or fleetrun"))
    error = EnvironmentProblem(f"{started} started this process ({variable} is set), but this Python loads {own}: they "
                               f"do not belong together, and the ranks would not find each other; {cure}")
    error.reported_by_peer = max(settings.get("PMIX_RANK"), settings.get("PMI_RANK")) > 0
    return error
